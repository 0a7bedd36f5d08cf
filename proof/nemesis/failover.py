"""Failover: the same crew over a primary that is lost, and a standby that is promoted in its place.

Lossy: the standby has nothing of the last seconds. Their jobs and effects are lost together, and a worker
from the lost past must not commit. Synchronous: nothing that was answered may be missing.
"""

import asyncio
import contextlib
import secrets
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import psycopg
from psycopg.conninfo import make_conninfo

from faultline.embedded import EmbeddedServer
from faultline.worker.call_errors import NO_ROW_TELLS
from proof.nemesis.arena import Arena, Wanted, arena
from proof.nemesis.closing import Tell, close_up, drain
from proof.nemesis.crew import CREW, TRAPPED
from proof.nemesis.faults.processes import until_frozen
from proof.nemesis.ground import DATABASE, prepare
from proof.nemesis.mutants import break_database
from proof.nemesis.oracle import Facts
from proof.nemesis.outcome import Outcome
from proof.nemesis.plan import LEASE_SECONDS
from proof.nemesis.storm import Missed
from tests.promises.standby import StandbyServer, a_standby_of

How = Literal["lossy", "synchronous"]

BEFORE_SECONDS: Final = 6.0
LOST_SECONDS: Final = 1.0
ASLEEP_SECONDS: Final = 1.5 * LEASE_SECONDS
AFTER_SECONDS: Final = 3.0
REFUSED: Final = "select coalesce(sum(times), 0)::bigint from faultline.refusals"


@dataclass(eq=False)
class ServerPair:
    """A primary and its standby; `dsn` is whichever of them serves."""

    primary: EmbeddedServer
    standby: StandbyServer
    promoted: bool = False

    @property
    def dsn(self) -> str:
        return self.standby.dsn(DATABASE) if self.promoted else self.primary.dsn(DATABASE)

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        dsn = make_conninfo(self.dsn, application_name="nemesis", connect_timeout=3)
        return psycopg.connect(dsn, autocommit=True, **options)

    def wait_for_sync(self) -> None:
        with psycopg.connect(self.primary.dsn(), autocommit=True) as conn:
            conn.execute("alter system set synchronous_standby_names = '*'")
            conn.execute("select pg_reload_conf()")
            question = (
                "select exists (select from pg_stat_replication where sync_state in ('sync', 'quorum'))"
            )
            until = time.monotonic() + 30
            while conn.execute(question).fetchone() != (True,):
                assert time.monotonic() < until, "the standby never became synchronous"
                time.sleep(0.05)


async def fail_over(wanted: Wanted, how: How, folder: Path, outcome: Outcome, tell: Tell) -> None:
    """One failover under load, and the checker on the server that was promoted."""
    tell(f"{how} failover", 1.0)
    with EmbeddedServer.open(fsync=False) as primary:
        if not (primary.binaries / "pg_basebackup").exists():
            outcome.lacks[f"{how} failover"] = "the server's binaries have no pg_basebackup"
            return
        primary.create_database(DATABASE)
        prepare(primary.dsn(DATABASE))
        if wanted.mutant:
            break_database(primary.dsn(DATABASE), wanted.mutant)
        with a_standby_of(primary) as standby:
            pair = ServerPair(primary, standby)
            if how == "synchronous":
                pair.wait_for_sync()
            await _play(wanted, how, folder, pair, outcome, tell)


async def _play(
    wanted: Wanted, how: How, folder: Path, pair: ServerPair, outcome: Outcome, tell: Tell
) -> None:
    crew = {name: CREW[name] for name in ("anna", "clara")}
    async with arena(wanted, secrets.token_hex(6), folder, lambda: pair.dsn, crew) as stage:
        await asyncio.sleep(BEFORE_SECONDS)
        promised_until = await _lose_the_primary(stage, pair, how)
        refused_before = await asyncio.to_thread(_one, pair, REFUSED)
        await asyncio.sleep(ASLEEP_SECONDS)
        stage.posts["trapped"].send(signal.SIGCONT, all_of_it=True)
        await asyncio.sleep(AFTER_SECONDS)
        await stage.stop_producers()
        drained, _ = await drain(pair, tell)
        facts, findings = await close_up(stage, pair, promised_until=promised_until)
        outcome.findings += [replace(finding, phase=how) for finding in (*findings, drained)]
        refused = await asyncio.to_thread(_one, pair, REFUSED) - refused_before
        _count(how, facts, refused, _without_a_trace(stage.posts["trapped"].log), outcome)


async def _lose_the_primary(stage: Arena, pair: ServerPair, how: How) -> float:
    """Until when an answer was a promise; afterwards the standby serves."""
    promised_until = float("inf")
    if how == "lossy":
        promised_until = time.time()
        await asyncio.to_thread(pair.standby.catch_up, pair.primary.dsn())
        await asyncio.to_thread(pair.standby.cut_off)
        await asyncio.sleep(LOST_SECONDS)
    # The new primary may not know what it claims now; it wakes when that primary serves.
    trapped = await stage.man("trapped", TRAPPED["ambushes"])
    with contextlib.suppress(Missed):
        await until_frozen(trapped)
    for link in stage.links.values():
        link.close_way()
    await asyncio.to_thread(pair.primary.halt, "immediate")
    await asyncio.to_thread(pair.standby.promote)
    pair.promoted = True
    for link in stage.links.values():
        link.heal()
    return promised_until


def _one(pair: ServerPair, question: str) -> int:
    with pair.connect() as conn:
        row = conn.execute(question.encode()).fetchone()
        return int(row[0]) if row else 0


def _without_a_trace(log: Path) -> int:
    """How often the frozen worker was told that its job is gone: it was lost whole."""
    return log.read_text(errors="replace").count(NO_ROW_TELLS)


def _count(how: How, facts: Facts, refused: int, traceless: int, outcome: Outcome) -> None:
    answered = [note for note in facts.notes if note["said"] == "ok"]
    there = {(job, standing.request) for job, standing in facts.jobs.items()}
    lost = sum((note["job"], note["request"]) not in there for note in answered)
    outcome.counts |= {
        f"{how} failover: enqueues answered": len(answered),
        f"{how} failover: of these taken back": lost,
        f"{how} failover: writes from before it refused": refused,
        f"{how} failover: of a job that was taken back": traceless,
    }
    outcome.sometimes[f"{how} failover: a write from before it came to nothing"] = refused + traceless
    if how == "lossy":
        outcome.sometimes["lossy failover: something was taken back"] = lost
