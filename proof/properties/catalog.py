"""Every property by its name, and how one of them is asked in a database of its own, perhaps a broken one."""

import secrets
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psycopg
from hypothesis import Phase, seed
from hypothesis.errors import FlakyFailure
from hypothesis.stateful import run_state_machine_as_test
from psycopg.conninfo import make_conninfo
from psycopg.sql import SQL, Identifier

from faultline.errors import DatabaseError, FaultlineError
from proof.properties import codecs, delays, keys, limits, tokens
from proof.properties.asking import Property, chosen
from proof.properties.ground import PropertyDatabase, opened
from proof.properties.machine import Machine
from proof.properties.mutants import MACHINE, MUTANTS
from proof.properties.report import PropertyCheck
from tests.promises.rewriting import rewrite

ASKED: Final[tuple[Property, ...]] = (
    *delays.PROPERTIES, *codecs.PROPERTIES, *keys.PROPERTIES, *limits.PROPERTIES, *tokens.PROPERTIES,
)  # fmt: skip
STEPS: Final = 50
HUNTING: Final = 80
"""How many histories a mutant of the machine may live through; most die in the first few."""

NOTICING: Final = (AssertionError, FaultlineError, OverflowError, psycopg.IntegrityError)
"""An assertion says that something is wrong, or a constraint, or a verb that raises what it should not."""

HUNTED_EVERY: Final = 6
"""A mutant that only the audit notices may live for a few steps."""

TRUE: Final = "true"
NOTICED: Final = "noticed"


@dataclass(frozen=True, slots=True)
class PropertyTask:
    """One thing to do: a property, whole or broken by a mutant."""

    server: str
    template: str
    name: str
    mutant: str
    """By its name; empty for the property as it is."""
    examples: int
    seed: int


def perform(task: PropertyTask) -> tuple[PropertyCheck, Counter[str]]:
    """Do it in a fresh database; the line it makes and how often each interesting thing happened."""
    began = time.monotonic()
    with a_database(task.server, task.template) as dsn, opened(dsn) as ground:
        found, first = _found(task, ground)
        counts = Counter[str]() if task.mutant else ground.counts
    seconds = time.monotonic() - began
    if task.mutant:
        return PropertyCheck(
            "mutant", f"{task.mutant}, by: {task.name}", NOTICED, found, seconds, first
        ), counts
    return PropertyCheck("property", task.name, TRUE, found, seconds, first), counts


def _found(task: PropertyTask, ground: PropertyDatabase) -> tuple[str, str]:
    try:
        if not task.mutant:
            ask(task.name, ground, task.examples, with_seed=task.seed)
            return TRUE, ""
        mutant = next(one for one in MUTANTS if one.name == task.mutant)
        for edit in mutant.edits:
            rewrite(ground.dsn, *edit)
        with mutant.broken():
            ask(task.name, ground, task.examples, with_seed=task.seed, hunting=True)
    except Exception as failure:
        if not task.mutant:
            return "false", traceback.format_exc()
        # A claim chooses between two lanes at random: such a failure may not come a second time.
        first = failure.exceptions[0] if isinstance(failure, FlakyFailure) else failure
        # A mutant that does not fit, or does not run at all, would be noticed for the wrong reason.
        if isinstance(first, NOTICING) and not isinstance(first, DatabaseError):
            return NOTICED, _first_line(first)
        return "error", traceback.format_exc()
    return "survived", ""


def _first_line(failure: BaseException) -> str:
    """What was asserted, or else what was raised."""
    said = str(failure).splitlines()
    return said[0] if said and said[0] else f"{type(failure).__name__}"


def ask(
    name: str, ground: PropertyDatabase, examples: int, *, with_seed: int = 0, hunting: bool = False
) -> None:
    """Ask one property of one database. Hunting a mutant, the first failure will do: nothing is shrunk."""
    phases = {"phases": (Phase.generate,), "report_multiple_bugs": False} if hunting else {}
    if name != MACHINE:
        next(one for one in ASKED if one.name == name).ask(ground, examples, with_seed=with_seed, **phases)
        return

    @seed(with_seed)
    class Here(Machine):
        pass

    Here.ground = ground
    Here.audit_every = HUNTED_EVERY if hunting else Machine.audit_every
    how = chosen(examples, stateful_step_count=STEPS, **phases)
    run_state_machine_as_test(Here, settings=how)


@contextmanager
def a_database(server: str, template: str) -> Iterator[str]:
    """A copy of the template, dropped afterwards."""
    name = f"properties_{secrets.token_hex(6)}"
    with psycopg.connect(server, autocommit=True) as conn:
        conn.execute(SQL("create database {} template {}").format(Identifier(name), Identifier(template)))
        yield make_conninfo(server, dbname=name)
        conn.execute(SQL("drop database {} with (force)").format(Identifier(name)))


def every(server: str, template: str, examples: int, values: int, only: str = "") -> list[PropertyTask]:
    """The machine in two halves, so that both hands have something to do; the rest; the mutants."""
    whole = [PropertyTask(server, template, MACHINE, "", examples // 2, half) for half in (1, 2)]
    whole += [PropertyTask(server, template, one.name, "", values, 0) for one in ASKED]
    broken = [
        PropertyTask(
            server, template, one.noticed_by, one.name, HUNTING if one.noticed_by == MACHINE else values, 3
        )
        for one in MUTANTS
    ]
    return [task for task in whole + broken if only in task.name or only in task.mutant]
