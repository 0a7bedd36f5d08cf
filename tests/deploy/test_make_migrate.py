"""`make migrate`: it migrates the database that the settings name, whichever it is."""

import os
import subprocess
import sys

import pytest

from faultline.embedded import EmbeddedServer
from faultline.store.migrate import check
from tests.deploy.shipped import ROOT

COMPOSE = """#!/bin/sh
echo "$@" >> asked
case "$*" in *ps*) echo 0123456789ab ;; esac
"""


@pytest.fixture
def migrate(tmp_path):
    """The verb's program, in a folder of its own; by default with no settings."""

    def run(**changed: str) -> subprocess.CompletedProcess[str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith("FAULTLINE_")}
        here = {**ours, "COMPOSE": "no-compose-here", **changed}
        program = [sys.executable, str(ROOT / "scripts/migrate.py")]
        return subprocess.run(program, cwd=tmp_path, env=here, capture_output=True, text=True, timeout=100)

    return run


def test_the_database_that_was_named_is_migrated(migrate, empty_database):
    told = migrate(FAULTLINE_DSN=empty_database)

    assert told.returncode == 0, told.stderr
    assert check(empty_database).is_current


def test_that_of_a_running_faultline_dev_is_found_by_its_folder(migrate, tmp_path):
    with EmbeddedServer.open(tmp_path / ".faultline", fsync=False) as server:
        server.create_database("faultline")

        told = migrate()

        assert told.returncode == 0, told.stderr
        assert check(server.dsn("faultline")).is_current


def test_that_of_compose_is_migrated_where_it_is_up(migrate, tmp_path):
    program = tmp_path / "compose"
    program.write_text(COMPOSE)
    program.chmod(0o755)

    told = migrate(COMPOSE=f"{program} --ansi never")

    assert told.returncode == 0
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["--ansi never ps --quiet", "--ansi never run --rm migrate"]


def test_without_any_of_them_it_says_what_there_could_be(migrate):
    told = migrate()

    assert told.returncode == 1
    assert all(way in told.stderr for way in ("FAULTLINE_DSN=", "faultline dev", "no-compose-here up -d"))


def test_the_makefile_has_the_verb():
    told = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout

    assert {"make migrate", "make image-check", "make tools"} <= {
        " ".join(line.split()[:2]) for line in told.splitlines()
    }
