"""`faultline dev`: nothing prepared, a database and a worker; Ctrl-C, and nothing is left running."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from faultline.cli.serve.dev_server import running_dsn
from faultline.embedded.server_folder import ServerFolder

README = Path(__file__).parents[2] / "README.md"
SECURE = README.parent / "docs/guides/secure.md"


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


def test_the_address_is_whole_as_the_guide_says_of_this_one_command(start):
    """Every other DSN is shown without its password."""
    dev = start("dev", "--db-only")
    url, _ = address_of(dev)
    stopped(dev)
    (rule,) = [line for line in SECURE.read_text().splitlines() if line.startswith("- **Passwords.**")]

    assert urlsplit(url).password == Path(".faultline/password").read_text()
    assert urlsplit(url).hostname == "127.0.0.1"
    assert Path(".faultline/password").stat().st_mode & 0o077 == 0
    assert "`faultline dev`" in rule
    assert "`.faultline/password`" in rule


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


def test_the_readmes_block_for_a_postgresql_of_ones_own_runs_as_it_stands(start, run, shop, database):
    page = README.read_text()
    (source,) = re.findall(r"```python\n(# shop\.py\n.*?)```", page, re.DOTALL)
    (block,) = re.findall(r"With a PostgreSQL of your own.*?```\n(.*?)```", page, re.DOTALL)
    (shop / "shop.py").write_text(source)
    migrated, enqueued, worked, listed = re.findall(r"^faultline (.*?)(?: {2,}#.*)?$", block, re.MULTILINE)

    assert run(*shlex.split(migrated), env={"FAULTLINE_DSN": database}).exit_code == 0
    typed = run(*shlex.split(enqueued), env={"FAULTLINE_DSN": database})
    worker = start(*shlex.split(worked), "--until-empty", FAULTLINE_DSN=database, PYTHONPATH=str(shop))
    _, said = worker.communicate(timeout=60)

    assert typed.stdout.endswith("enqueued in default\n"), typed.stderr
    assert worker.returncode == 0, said
    assert "not served" not in said
    assert "succeeded" in run("jobs", "list", env={"FAULTLINE_DSN": database}).stdout
    assert run(*shlex.split(listed), env={"FAULTLINE_DSN": database}).exit_code == 0


def test_a_port_that_is_taken_is_told_and_taken_back_when_it_is_free(start, tmp_path):
    first = start("dev", "--db-only")
    url, _ = address_of(first)
    stopped(first)
    port = ServerFolder((tmp_path / ".faultline").absolute()).read_port()

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
    assert "FAULTLINE_DSN is set" not in again.communicate(timeout=60)[1]


@pytest.mark.parametrize("words", [["--db-only"], ["shop_under_test:app"]])
def test_dev_says_where_commands_go_while_a_dsn_names_another_database(start, shop, words):
    """FAULTLINE_DSN wins for every other command, also in this folder."""
    dev = start("dev", *words, FAULTLINE_DSN="postgresql://elsewhere/shop")
    first = dev.stdout.readline()
    address_of(dev)
    dev.send_signal(signal.SIGINT)
    _, said = dev.communicate(timeout=60)

    assert "migrated." in first
    assert "find it" not in first
    assert "FAULTLINE_DSN is set, and names another database" in said
    assert "commands here go to that one until `unset FAULTLINE_DSN`" in said


@pytest.mark.parametrize("words", [["dev", "shop:app"], ["dev", "--db-only"], ["demo"]])
def test_what_brings_its_own_database_refuses_another(run, words):
    for typed in ([*words, "--dsn", "dbname=shop"], ["--dsn", "dbname=shop", *words]):
        told = run(*typed)

        assert told.exit_code == 2
        assert f"`faultline {words[0]}` brings its own database; leave --dsn out" in told.stderr
    assert not Path(".faultline").exists()
