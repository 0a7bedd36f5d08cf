"""Faults of single calls: carried out and not answered, or cut before they arrive."""

import asyncio
from typing import Final

from proof.nemesis.plan import Fault
from proof.nemesis.proxy import Link, Trap, When
from proof.nemesis.storm import Missed, Storm

COMMIT: Final = ("COMMIT", "commit")
CALLS: Final = tuple(
    f"faultline.{verb}("
    for verb in ("complete_many", "claim", "fail_many", "enqueue", "complete", "heartbeat", "outcome", "round")
)
WAIT_SECONDS_MAX: Final = 10.0


async def lost_commit(storm: Storm, fault: Fault) -> str:
    """On any line: the first COMMIT that comes is carried out, and its reply is thrown away."""
    return await _lay(storm, fault, COMMIT, "after")


async def lost_reply(storm: Storm, fault: Fault) -> str:
    return await _lay(storm, fault, (CALLS[int(fault.chance * len(CALLS))],), "after")


async def cut_before(storm: Storm, fault: Fault) -> str:
    words = COMMIT if fault.chance < 0.4 else (CALLS[int(fault.chance * len(CALLS))],)
    return await _lay(storm, fault, words, "before")


async def _lay(storm: Storm, fault: Fault, words: tuple[str, ...], when: When) -> str:
    links = [link for name, link in storm.arena.links.items() if not name.startswith("trapped")]
    trap = Trap(words, when)
    _spread(trap, links)
    try:
        async with asyncio.timeout(max(WAIT_SECONDS_MAX, fault.lasts)):
            await trap.sprung.wait()
    except TimeoutError:
        raise Missed(f"nobody said {words[0]}") from None
    finally:
        for link in links:
            if trap in link.traps:
                link.traps.remove(trap)
    storm.counts.lost(trap)
    said = trap.statement.split("(")[0].removeprefix("select * from ")[:60]
    if when == "before":
        return f"cut before {said}"
    return f"{said}, {'carried out' if trap.carried_out else 'refused'}, reply lost"


def _spread(trap: Trap, links: list[Link]) -> None:
    """One trap on every line: whoever speaks first is caught."""
    for link in links:
        link.traps.append(trap)


ACTS: Final = {"lost-commit": lost_commit, "lost-reply": lost_reply, "cut-before": cut_before}
