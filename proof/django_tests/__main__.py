"""Run Django's own tests of tasks on Faultline's backend, from a source distribution of Django 6.

    pip download --no-deps --no-binary django 'django>=6' && tar xf django-6*.tar.gz
    python -m proof.django_tests django-6.1.3

Of `tests/tasks`, the tests of the interface and of DummyBackend run as they stand, with our backend in its
place; those of ImmediateBackend with a worker that runs each task before `enqueue` returns. They are made to
use a database. What is left out is listed below, with the reason.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from faultline.embedded import EmbeddedServer

ROOT: Final = Path(__file__).parents[2]
OURS: Final = "proof.django_tests.backends"

REPLACED: Final = (
    ("django.tasks.backends.dummy.DummyBackend", f"{OURS}.Backend"),
    ("django.tasks.backends.immediate.ImmediateBackend", f"{OURS}.WorkedBackend"),
    ("from django.tasks.backends.dummy import DummyBackend", f"from {OURS} import Backend as DummyBackend"),
    (
        "from django.tasks.backends.immediate import ImmediateBackend",
        f"from {OURS} import WorkedBackend as ImmediateBackend",
    ),
    ("SimpleTestCase", "TransactionTestCase"),  # the others may not use a database
)

LEFT_OUT: Final[Mapping[str, str]] = {
    "test_clear": "`clear` is DummyBackend's own: jobs are not forgotten",
    "test_refresh_result": "for DummyBackend: it changes the stored result through a reference that it kept",
    "test_refresh_result_async": "the same",
    "test_cannot_get_result": "ImmediateBackend keeps no results; ours does",
    "test_cannot_refresh_result": "the same",
    "test_cannot_pass_run_after": "ImmediateBackend has no run_after; ours does",
    "test_throws_keyboard_interrupt": "it interrupts the caller of `enqueue`; a worker is another process",
    "test_doesnt_wait_until_transaction_commit_by_default": "a job begins after the commit, by design",
}
"""Tests by name, and why they do not apply."""


def prepare(source: Path, folder: Path) -> None:
    """Copy the tests, with our backends in the place of those that they name."""
    (folder / "tasks").mkdir()
    for file in sorted((source / "tests" / "tasks").glob("*.py")):
        text = file.read_text()
        for old, new in REPLACED:
            text = text.replace(old, new)
        if file.name.startswith("test_"):
            text = re.sub(r"TransactionTestCase, TransactionTestCase", "TransactionTestCase", text)
        (folder / "tasks" / file.name).write_text(_without(text, file.name))


def _without(text: str, file: str) -> str:
    """Skip the tests that do not apply; those of the interface keep their `refresh`."""
    for name, reason in LEFT_OUT.items():
        if file == "test_tasks.py" or (file == "test_custom_backend.py"):
            continue
        text = re.sub(
            rf"^(    )((?:async )?def {name}\(self\))", rf"\1@__import__('unittest').skip({reason!r})\n\1\2",
            text, flags=re.MULTILINE,
        )  # fmt: skip
    return text


def main() -> int:
    """Exit code of Django's test runner."""
    parser = argparse.ArgumentParser(prog="proof.django_tests", description="Django's tests of tasks")
    parser.add_argument("source", type=Path, help="an unpacked source distribution of Django 6")
    asked = parser.parse_args()
    if not (asked.source / "tests" / "tasks").is_dir():
        parser.error(f"{asked.source} has no tests/tasks: is it a source distribution of Django 6?")
    with tempfile.TemporaryDirectory() as made, EmbeddedServer.open(Path(made) / "pg", fsync=False) as server:
        folder = Path(made) / "tests"
        folder.mkdir()
        prepare(asked.source, folder)
        return subprocess.run(
            [sys.executable, "-m", "django", "test", "tasks", "--keepdb"],
            cwd=folder,
            env={
                **os.environ,
                "FAULTLINE_DSN": server.dsn(),
                "DJANGO_ALLOW_ASYNC_UNSAFE": "1",  # some read a result in a loop without awaiting it
                "DJANGO_SETTINGS_MODULE": "proof.django_tests.settings",
                "PYTHONPATH": os.pathsep.join((str(ROOT), str(folder))),
            },
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
