"""Faults of single calls: carried out and not answered, or cut before they arrive."""

import asyncio
from typing import Final

from proof.nemesis.plan import Fault
from proof.nemesis.proxy import Link, Trap, When
from proof.nemesis.storm import Missed, Storm

COMMIT: Final = ("COMMIT", "commit")
CALLS: Final = tuple(
    f"faultline.{verb}("
    for verb in (
        "complete_many",
        "claim",
        "fail_many",
        "enqueue",
        "complete",
        "heartbeat",
        "outcome",
        "round",
    )
)
WAIT_SECONDS_MAX: Final = 6.0


async def lost_commit(storm: Storm, fault: Fault) -> str:
    """The first COMMIT that comes is carried out, and its reply is thrown away; most often a worker's."""
    return await _lay(storm, COMMIT, "after", workers_only=fault.planned or fault.chance < 0.5)


async def lost_reply(storm: Storm, fault: Fault) -> str:
    return await _lay(storm, (_call(fault),), "after")


async def cut_before(storm: Storm, fault: Fault) -> str:
    return await _lay(storm, COMMIT if fault.chance < 0.4 else (_call(fault),), "before")


def _call(fault: Fault) -> str:
    return CALLS[fault.subject % len(CALLS)]


async def _lay(storm: Storm, words: tuple[str, ...], when: When, *, workers_only: bool = False) -> str:
    links = [
        link
        for name, link in storm.arena.links.items()
        if not name.startswith("trapped") and not (workers_only and name == "producers")
    ]
    trap = Trap(words, when)
    _spread(trap, links)
    try:
        if not await _sprung(trap):
            trap.words = CALLS if words != COMMIT else COMMIT  # no client says it now: take the next
            if not await _sprung(trap):
                raise Missed(f"no client said {words[0]}")
    finally:
        for link in links:
            if trap in link.traps:
                link.traps.remove(trap)
    storm.counts.lost(trap)
    said = trap.statement.split("(")[0].removeprefix("select * from ")[:60]
    if when == "before":
        return f"{trap.line}: cut before {said}"
    return f"{trap.line}: {said}, {'carried out' if trap.carried_out else 'refused'}, reply lost"


async def _sprung(trap: Trap) -> bool:
    try:
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            await trap.sprung.wait()
    except TimeoutError:
        return False
    return True


def _spread(trap: Trap, links: list[Link]) -> None:
    """One trap on every line: it catches the client that speaks first."""
    for link in links:
        link.traps.append(trap)


ACTS: Final = {"lost-commit": lost_commit, "lost-reply": lost_reply, "cut-before": cut_before}
