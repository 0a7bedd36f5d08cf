"""`faultline dev`: nothing prepared, a database and a worker; Ctrl-C, and nothing is left running."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psycopg

from faultline.cli.dev_server import running_dsn
from faultline.embedded.place import Place

README = Path(__file__).parents[2] / "README.md"


def test_dev_brings_a_database_that_other_commands_in_the_folder_find(start, run, shop):
    dev = start("dev", "shop_under_test:app", "--quiet")
    while (dsn := running_dsn()) is None or run("migrate", "--check").exit_code:
        assert dev.poll() is None, dev.communicate()

    job = run("enqueue", "greet", '{"name": "Ada"}', "--quiet").stdout.strip()
    while "succeeded" not in run("jobs", "show", job).stdout:
        assert dev.poll() is None, dev.communicate()
    dev.send_signal(signal.SIGINT)
    _, said = dev.communicate(timeout=30)

    assert dev.returncode == 0, said
    assert "execution_finished" in said
    assert running_dsn() is None
    assert run("jobs", "list").exit_code == 2
    assert not Path(dsn.split("host=")[1].split()[0]).exists()


def test_dev_with_a_wrong_app_leaves_no_server_running(start, shop):
    dev = start("dev", "shop_under_test:nope")
    _, said = dev.communicate(timeout=60)

    assert dev.returncode == 2
    assert "has no nope" in said.splitlines()[-1]
    assert running_dsn(shop / ".faultline") is None
    assert (shop / ".faultline" / "pg").is_dir()
    assert os.listdir(shop / ".faultline")  # noqa: PTH208


def address_of(dev):
    """The URL that `faultline dev` prints, and what it prints for SQLAlchemy."""
    said: list[str] = []
    while not (said and "SQLAlchemy" in said[-1]):
        line = dev.stdout.readline()
        assert line, dev.communicate()
        said.append(line.strip())
    return said[-2].removeprefix("export FAULTLINE_DSN="), said[-1].removeprefix("SQLAlchemy: ")


def stopped(dev, how=signal.SIGINT):
    dev.send_signal(how)
    said = dev.communicate(timeout=60)
    assert dev.returncode == 0, said
    return said


def test_the_address_is_the_same_at_every_start_and_good_for_any_client(start, tmp_path):
    first = start("dev", "--db-only")
    url, for_sqlalchemy = address_of(first)
    with psycopg.connect(url) as conn:
        conn.execute("select faultline.enqueue('greet', '{}')")
    stopped(first)
    again = start("dev", "--db-only")

    assert address_of(again)[0] == url
    assert for_sqlalchemy == url.replace("postgresql://", "postgresql+psycopg://")
    with psycopg.connect(url) as conn:
        assert conn.execute("select count(*) from faultline.jobs").fetchone() == (1,)
    stopped(again, signal.SIGTERM)
    assert running_dsn() is None


def test_the_readmes_first_app_runs_as_it_stands(start, run, shop):
    page = README.read_text()
    (source,) = re.findall(r"```python\n(# shop\.py\n.*?)```", page, re.DOTALL)
    (program,) = re.findall(r'^python -c "(.*)"$', page, re.MULTILINE)
    (enqueue,) = re.findall(r"^faultline (enqueue .*?) +# in another", page, re.MULTILINE)
    (shop / "shop.py").write_text(source)
    dev = start("dev", "shop:app")
    url, _ = address_of(dev)

    typed = run(*shlex.split(enqueue))
    told = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "FAULTLINE_DSN": url}, cwd=shop,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip

    assert typed.stdout == "job 1 enqueued in default\n", typed.stderr
    assert (told.stdout, told.stderr) == ("hello Ada\n", "")
    assert "succeeded" in run("jobs", "list").stdout
    stopped(dev)


def test_a_port_that_is_taken_is_told_and_taken_back_when_it_is_free(start, tmp_path):
    first = start("dev", "--db-only")
    url, _ = address_of(first)
    stopped(first)
    port = Place((tmp_path / ".faultline").absolute()).read_port()

    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()
        elsewhere = start("dev", "--db-only")
        second, _ = address_of(elsewhere)
        _, said = stopped(elsewhere)

    assert second != url
    assert f"port {port}, where this database listened before, is taken by another program" in said
    third = start("dev", "--db-only")
    assert address_of(third)[0] == url
    stopped(third)


def test_dev_without_an_app_says_how_to_go_on(run):
    result = run("dev")

    assert result.exit_code == 2
    assert "such as shop:app, or say --db-only" in result.stderr
    assert run("dev", "shop:app", "--db-only").exit_code == 2
    assert not Path(".faultline").exists()


def test_dev_is_silent_about_a_dsn_that_names_its_own_database(start, shop):
    """The README has one export the address it prints; the next start must not say that it goes unused."""
    first = start("dev", "--db-only")
    url, _ = address_of(first)
    stopped(first)

    again = start("dev", "--db-only", FAULTLINE_DSN=url)
    assert address_of(again)[0] == url
    again.send_signal(signal.SIGINT)
    assert "is not used" not in again.communicate(timeout=60)[1]

    other = start("dev", "--db-only", FAULTLINE_DSN="postgresql://elsewhere/shop")
    address_of(other)
    other.send_signal(signal.SIGINT)
    assert "the DSN that was set is not used" in other.communicate(timeout=60)[1]
