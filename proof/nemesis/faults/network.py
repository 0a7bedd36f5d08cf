"""Faults of the network: every one of them on one line, a worker's or the producers'."""

import asyncio
import time
from typing import Final, Literal

from proof.nemesis.plan import Fault
from proof.nemesis.proxy import Link, Way
from proof.nemesis.storm import Missed, Storm

FLAP_SECONDS: Final = 0.8
DELAY_SECONDS_MAX: Final = 0.3


def _line(storm: Storm, fault: Fault) -> Link:
    links = [link for name, link in storm.arena.links.items() if not name.startswith("trapped")]
    return links[fault.subject % len(links)]


async def cut(storm: Storm, fault: Fault) -> str:
    """All connections of one line, or of all of them."""
    if fault.chance < 0.25:
        return f"all clients, {sum(link.cut() for link in storm.arena.links.values())} connections"
    link = _line(storm, fault)
    return f"{link.name}, {link.cut()} connections"


async def half_open_near(storm: Storm, fault: Fault) -> str:
    return await _half_open(storm, fault, "near")


async def half_open_far(storm: Storm, fault: Fault) -> str:
    return await _half_open(storm, fault, "far")


async def _half_open(storm: Storm, fault: Fault, left: Literal["near", "far"]) -> str:
    link = _line(storm, fault)
    count = link.half_open(left)
    if not count:
        raise Missed(f"{link.name} had no connection")
    await asyncio.sleep(fault.lasts)
    link.heal()
    return f"{link.name}, {count} connections, {fault.lasts:.1f} s"


async def deaf(storm: Storm, fault: Fault) -> str:
    return await _stop(storm, fault, "down")


async def mute(storm: Storm, fault: Fault) -> str:
    return await _stop(storm, fault, "up")


async def silent(storm: Storm, fault: Fault) -> str:
    return await _stop(storm, fault, "up", "down")


async def _stop(storm: Storm, fault: Fault, *ways: Way) -> str:
    link = _line(storm, fault)
    for way in ways:
        link.stop_flow(way)
    await asyncio.sleep(fault.lasts)
    link.heal()
    return f"{link.name} for {fault.lasts:.1f} s"


async def delay(storm: Storm, fault: Fault) -> str:
    link = _line(storm, fault)
    link.delay = fault.chance * DELAY_SECONDS_MAX
    await asyncio.sleep(fault.lasts)
    told = f"{link.name}, {link.delay * 1000:.0f} ms each way, for {fault.lasts:.1f} s"
    link.heal()
    return told


async def flap(storm: Storm, fault: Fault) -> str:
    link, until = _line(storm, fault), time.monotonic() + fault.lasts
    flaps = 0
    while time.monotonic() < until:
        link.close_way()
        await asyncio.sleep(FLAP_SECONDS)
        link.heal()
        flaps += 1
        await asyncio.sleep(FLAP_SECONDS)
    return f"{link.name}, {flaps} times"


ACTS: Final = {
    "cut": cut, "half-open-near": half_open_near, "half-open-far": half_open_far, "deaf": deaf, "mute": mute,
    "silent": silent, "delay": delay, "flap": flap,
}  # fmt: skip
