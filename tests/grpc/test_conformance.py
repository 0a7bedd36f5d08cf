"""Our own server against the conformance kit: every sentence of the protocol, fences included."""

import asyncio
import json
from contextlib import suppress
from datetime import timedelta

import pytest

from faultline.errors import FaultlineError, NotAuthenticated
from faultline.lab.conformance.run_checks import check_server
from faultline.lab.conformance.server_checks import CHECKS
from faultline.store import calls
from tests.grpc.conftest import serving

TICK = timedelta(milliseconds=200)


async def _watch(store):
    """What a watchdog does, often: the leases of the checks are short."""
    await store.run(calls.configure(default_lease=timedelta(seconds=1)))
    while True:
        with suppress(FaultlineError):
            if await store.run(calls.round_(TICK)):
                await store.run(calls.reap())
                for queue, _ in await store.run(calls.promote()):
                    await store.run(calls.wake(queue))
        await asyncio.sleep(TICK.total_seconds())


@pytest.fixture(scope="module")
def verdicts(shared):
    async def main():
        async with serving(shared) as place:
            watching = asyncio.create_task(_watch(place.store))
            try:
                return await check_server(place.target, place.key, lambda verdict: None)
            finally:
                watching.cancel()

    return {verdict.name: verdict for verdict in asyncio.run(main())}


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_the_server_keeps_the_protocol(verdicts, name):
    assert (verdicts[name].word, verdicts[name].told) == ("kept", "")


@pytest.mark.parametrize("key", [None, "flk_wrong"])
def test_without_a_key_that_opens_nothing_is_checked_and_nothing_is_told_broken(shared, key):
    told: list[object] = []

    async def main():
        async with serving(shared, trust_loopback=False) as place:
            await check_server(place.target, key, told.append)

    with pytest.raises(NotAuthenticated, match=r"so nothing was checked: .* in FAULTLINE_API_KEY"):
        asyncio.run(main())
    assert told == []


def test_a_verdict_can_be_printed(verdicts):
    assert json.dumps([verdict.document() for verdict in verdicts.values()])
