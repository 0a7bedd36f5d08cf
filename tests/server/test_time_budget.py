"""One request waits for the database for so long in all, whichever of its steps takes the time."""

import asyncio

import pytest

from faultline.server.throttling.time_budget import TimeBudget

NEVER = 3600.0


async def step(patience, seconds):
    async with patience.spent():
        await asyncio.sleep(seconds)


def test_what_one_step_took_is_missing_to_the_next():
    patience = TimeBudget(60.0)

    asyncio.run(step(patience, 0.05))

    assert patience.left <= 60.0 - 0.04


def test_a_step_past_the_end_is_given_up_and_so_is_the_next():
    patience = TimeBudget(0.05)

    for _ in range(2):
        with pytest.raises(TimeoutError):
            asyncio.run(step(patience, NEVER))


def test_time_between_steps_is_not_spent():
    """A client's body may come slowly: that is not the database's doing."""
    patience = TimeBudget(60.0)
    asyncio.run(step(patience, 0))
    left = patience.left

    asyncio.run(asyncio.sleep(0.05))

    assert patience.left == left
