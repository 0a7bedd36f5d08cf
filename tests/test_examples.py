"""The examples run as they stand, on a database of their own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
CRASH_TESTS = Path(__file__).parent / "examples"


def run(name: str, dsn: str) -> str:
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        env={**os.environ, "FAULTLINE_DSN": dsn},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def test_a_payment_whose_first_attempt_fails_is_taken_once(database: str) -> None:
    told = run("payments.py", database)

    assert "the same job: True" in told
    assert "result: {'charged': 120}" in told
    assert "paid: 120 charges at the provider: 1" in told


def test_a_mail_is_sent_only_for_a_user_whose_transaction_committed(database: str) -> None:
    told = run("signup.py", database)

    assert "rolled back: not-an-address is no address" in told
    assert "welcomed: ['ada@example.org']" in told


def test_a_handler_and_its_rules_decide_what_becomes_of_each_job(database: str) -> None:
    told = run("retries.py", database)

    for line in (
        "plain      succeeded  attempt 1  fetched plain in attempt 1",
        "flaky      succeeded  attempt 3  fetched flaky in attempt 3",
        "forbidden  dead",
        "missing    succeeded",
        "closed     dead       attempt 1  the account is closed",
        "replayed: queued",
    ):
        assert line in told


def test_a_handler_that_computes_runs_in_a_process_that_its_deadline_ends(database: str) -> None:
    told = run("primes.py", database)

    for line in (
        "primes below 10: 4, in another process: True",
        "primes below 1000000: 78498, in another process: True",
        "meanwhile: the loop is free",
        "factor: dead, TimeoutError: factor ran into its timeout and was told to stop",
    ):
        assert line in told


def test_every_example_is_run_by_a_test() -> None:
    """Those with crash tests stand in tests/examples."""
    tests = "".join(file.read_text() for file in [Path(__file__), *CRASH_TESTS.glob("test_*.py")])

    for example in EXAMPLES.glob("*.py"):
        assert f'"{example.name}"' in tests, example.name
    for folder in EXAMPLES.glob("*/__init__.py"):
        assert (CRASH_TESTS / f"test_{folder.parent.name}.py").exists(), folder


def test_examples_use_public_names_alone() -> None:
    for example in EXAMPLES.glob("**/*.py"):
        imported = re.findall(r"^\s*(?:from|import) (faultline\S*)", example.read_text(), re.MULTILINE)
        assert set(imported) <= {"faultline", "faultline.integrations.fastapi"}, example.name


@pytest.fixture(autouse=True)
def _no_stray_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAULTLINE_FAILPOINTS", raising=False)
