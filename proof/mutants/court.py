"""Every mutant stands trial on one server, several at a time because most of them wait."""

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from faultline.embedded import EmbeddedServer
from faultline.store.migrate import migrate
from proof.mutants.mutant import Mutant
from proof.mutants.sandbox import sandboxes
from proof.mutants.trial import Verdict, run_test, stand

MEMORY_WANTED = 2 * 1024**3

Tell = Callable[[Verdict], None]


class NotGreen(Exception):
    """A test of the mutants fails without a mutant: it would prove nothing."""


@contextmanager
def a_server() -> Iterator[EmbeddedServer]:
    """A server for the trials, in memory where there is room, without fsync: nothing outlives the run."""
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MEMORY_WANTED
    folder = (memory if roomy else Path(tempfile.gettempdir())) / f"faultline-mutants-{secrets.token_hex(6)}"
    settings = {"max_connections": "200"}
    with EmbeddedServer.open(folder, fsync=False, keep=False, settings=settings) as server:
        yield server


@contextmanager
def a_template(dsn: str) -> Iterator[str]:
    """The name of a migrated database, for all mutants that leave the schema alone."""
    name = f"mutants_{secrets.token_hex(6)}"
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(f"create database {name}".encode())
        migrate(make_conninfo(dsn, dbname=name))
        yield name
        conn.execute(f"drop database {name}".encode())


def try_all(mutants: Sequence[Mutant], dsn: str, jobs: int, tell: Tell) -> list[Verdict]:
    """A verdict for each, in their order; each is told as soon as it is known.

    A mutant that was not killed stands a second trial, alone: a crowded machine can hide what a test waits
    for, or make it red for another reason.
    """
    with sandboxes() as folder, a_template(dsn) as template, ThreadPoolExecutor(jobs) as pool:
        # Those that wait for real workers first: a long one at the end would leave the other side idle.
        order = sorted(range(len(mutants)), key=lambda number: "worker" not in mutants[number].test)
        waiting = {
            pool.submit(stand, mutants[number], number, folder, dsn, template): number for number in order
        }
        verdicts: dict[int, Verdict] = {}
        for trial in as_completed(waiting):
            verdicts[waiting[trial]] = verdict = trial.result()
            tell(verdict)
        for number, first in verdicts.items():
            if first.word != "killed":
                verdicts[number] = again = stand(mutants[number], number, folder, dsn, template)
                tell(again)
    return [verdicts[number] for number in range(len(mutants))]


def check_green(mutants: Sequence[Mutant], dsn: str) -> None:
    """Run every test that a mutant names against the whole package: all of them must pass."""
    with sandboxes() as folder:
        tests = list(dict.fromkeys(mutant.test for mutant in mutants))
        witness = folder / "green.json"
        said = run_test(tests, folder / "whole", dsn, witness, seconds_max=None)
        if not witness.exists() or json.loads(witness.read_text())["failed"]:
            raise NotGreen(said[-3000:])
