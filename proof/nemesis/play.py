"""Play a schedule: each fault at its moment, several at once where they meet."""

import asyncio
from collections.abc import Sequence
from typing import Final

from proof.nemesis.faults import ACTS
from proof.nemesis.plan import Fault
from proof.nemesis.storm import Missed, Storm, Struck

OVER_SECONDS_MAX: Final = 45.0
TRIES_MAX: Final = 4
AGAIN_SECONDS: Final = 1.5


async def play(storm: Storm, faults: Sequence[Fault], length: float, stop: asyncio.Event) -> None:
    """Do every fault of the schedule, and return when the last is over or `stop` is set."""
    tasks = [asyncio.create_task(_one(storm, fault)) for fault in faults]
    clock = asyncio.create_task(asyncio.sleep(length))
    ended = asyncio.create_task(stop.wait())
    await asyncio.wait([clock, ended], return_when=asyncio.FIRST_COMPLETED)
    for task in (clock, ended):
        task.cancel()
    pending = [task for task in tasks if not task.done()]
    if stop.is_set():
        for task in pending:
            task.cancel()
    if pending:
        _, left = await asyncio.wait(pending, timeout=OVER_SECONDS_MAX)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _one(storm: Storm, fault: Fault) -> None:
    await asyncio.sleep(max(0.0, fault.at - storm.now()))
    struck = await _strike(storm, fault)
    for _ in range(TRIES_MAX if fault.planned else 0):
        if not struck.missed:
            break
        await asyncio.sleep(AGAIN_SECONDS)
        struck = await _strike(storm, fault)
    storm.struck.append(struck)


async def _strike(storm: Storm, fault: Fault) -> Struck:
    began, missed, remark = storm.now(), False, "cut short"
    storm.under_way[fault.number] = fault.kind
    try:
        remark = await ACTS[fault.kind](storm, fault)
    except Missed as why:
        missed, remark = True, str(why)
    except storm.TROUBLE as trouble:
        missed, remark = True, f"the server could not be asked: {type(trouble).__name__}"
    finally:
        storm.under_way.pop(fault.number, None)
    return Struck(fault.kind, fault.lane, began, storm.now(), remark, missed)
