"""`faultline worker --server`: a command that knows a URL and a key, and shows the key nowhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from faultline.cli.serve.processes import command_of
from faultline.cli.serve.worker import WorkerOptions
from faultline.cli.terminal import OutputOptions, Terminal
from faultline.errors import ConfigError
from faultline.remote import grpc_extra
from faultline.remote.server_address import ServerAddress, read_key_file
from tests.support import enqueue, state_of

APP = """
from faultline import Faultline
app = Faultline()

@app.task
async def echo(said: str) -> str:
    return said
"""


def run(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The command in a folder with an app, in an environment that names no database."""
    (folder / "echoing.py").write_text(APP)
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
    paths = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-P", "-m", "faultline", "worker", "echoing:app", *arguments],
        cwd=folder, env={**ours, "PYTHONPATH": paths, **environment}, capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip


def test_a_url_and_a_key_are_enough(store, served, tmp_path):
    job = enqueue(store, task="echo", args='{"said": "hello"}')

    told = run(tmp_path, "--until-empty", "--server", served.url, FAULTLINE_API_KEY=served.key)

    assert told.returncode == 0, told.stderr
    assert state_of(store, job) == "succeeded"
    assert served.key not in told.stdout + told.stderr


@pytest.mark.long
def test_several_processes_work_over_a_server(store, served, tmp_path):
    jobs = [enqueue(store, task="echo", args='{"said": "hello"}') for _ in range(20)]
    key = tmp_path / "key"
    key.write_text(served.key + "\n")

    told = run(
        tmp_path, "--until-empty", "--processes", "2", "--key-file", str(key), FAULTLINE_SERVER=served.url
    )

    assert told.returncode == 0, told.stderr
    assert {state_of(store, job) for job in jobs} == {"succeeded"}


def test_a_server_that_is_not_there_is_told_with_what_to_check(tmp_path):
    told = run(tmp_path, "--server", "grpc://127.0.0.1:1", FAULTLINE_API_KEY="flk_any")

    assert told.returncode == 1
    assert "nothing listens there (Connection refused); check the address in --server, and" in told.stderr
    assert "that `faultline server --grpc` runs there" in told.stderr


def test_a_wrong_key_is_one_clear_line(served, tmp_path):
    told = run(tmp_path, "--server", served.url, FAULTLINE_API_KEY="flk_wrong")

    assert told.returncode == 1
    (line,) = told.stderr.strip().splitlines()
    assert "API key" in line
    assert "flk_wrong" not in line


def test_the_key_is_on_no_command_line():
    wanted = WorkerOptions(
        app="shop:app", queues=(), concurrency=None, threads=None, children=None, lease=None, grace=None,
        name=None, until_empty=False, jobs=None, log=None, server="grpc://queue.example", key_file=Path("k"),
    )  # fmt: skip

    line = command_of(Terminal(OutputOptions()), wanted, "here/1")

    assert line[3:] == [
        "faultline", "worker", "shop:app", "--server", "grpc://queue.example", "--key-file", "k", "--name",
        "here/1", "--supervised",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("", "no server was named"),
        ("ftp://queue.example", "is not a server's URL"),
        ("grpc://queue.example:99999", "is not a server's URL"),
        ("grpc://queue.example/jobs", "is not a server's URL"),
        ("grpc://flk_secret@queue.example", "holds no name and no key"),
        ("grpc://a,grpcs://b", "one kind of URL"),
    ],
)
def test_what_is_no_server_is_refused_and_quotes_no_key(server, said):
    with pytest.raises(ConfigError, match=said) as raised:
        ServerAddress.read(server)

    assert "flk_secret" not in str(raised.value)


def test_certificates_need_tls_and_come_in_pairs():
    with pytest.raises(ConfigError, match="grpcs://"):
        ServerAddress.read("grpc://queue.example", ca="ca.pem")
    with pytest.raises(ConfigError, match="together"):
        ServerAddress.read("grpcs://queue.example", cert="cert.pem")


@pytest.mark.parametrize("text", ["", "two words", "key\x00", "x" * 600])
def test_what_is_no_key_is_refused_unquoted(tmp_path, text):
    file = tmp_path / "key"
    file.write_text(text)

    with pytest.raises(ConfigError) as raised:
        read_key_file(file)

    assert not text or text not in str(raised.value)


def test_without_grpc_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(grpc_extra, "find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"faultline-queue\[grpc\]"):
        grpc_extra.require_grpc()
