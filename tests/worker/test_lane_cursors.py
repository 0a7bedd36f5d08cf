"""A worker steps over its own claims, and looks from the floor often enough for all other jobs."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from faultline.errors import ServerUnavailable
from faultline.store import calls
from faultline.worker.claiming import lane_cursors as memories
from faultline.worker.claiming.lane_cursors import LaneCursors
from faultline.worker.state import WorkerState
from tests.support import LEASE, claim_many, enqueue, new_job, state_of, still_time
from tests.worker.harness import claimer_of, drain, eventually, quick, working


def row(lane: int, place: int) -> tuple[object, ...]:
    return (*[None] * 13, lane, place)


@pytest.fixture(params=[60.0, 2.0**32], ids=["just booted", "up for 136 years"])
def clock(monkeypatch, request):
    return still_time(monkeypatch, request.param)


def test_what_was_passed_a_while_ago_is_stepped_over(clock):
    memory = LaneCursors()
    memory.took([row(1, 7), row(1, 9), row(2, 8)])

    clock.now += 0.05
    assert memory.begins() == {}  # another session may still commit behind it
    clock.now += 0.2
    assert memory.begins() == {}  # and it was time to look from the floor
    clock.now += 0.05
    assert memory.begins() == {1: 10, 2: 9}
    assert memory.stepped_over


@pytest.mark.parametrize(
    ("committed_after", "found_within", "is_full"),
    [(0.05, 0.0, False), (0.05, 0.1, True), (0.45, 0.1, False), (0.45, 0.1, True), (5.25, 1.0, True)],
)
def test_a_job_committed_late_is_found_soon_also_by_a_worker_that_is_never_idle(
    clock, committed_after, found_within, is_full
):
    """A claim each 10 ms brings the next place; another session drew place 10,000 and commits later."""
    memory, late, place = LaneCursors(), None, 9_700
    for _ in range(1500):
        clock.now += 0.01
        begins = memory.begins().get(1, 0)
        if place > 10_000 and late is None:
            late = clock.now
        if late is not None and clock.now >= late + committed_after and begins <= 10_000:
            break
        place += 1
        memory.took([row(1, place)], is_full=is_full)

    assert clock.now - (late + committed_after) <= found_within + 0.011


def test_most_claims_of_a_worker_that_is_never_idle_step_over_what_they_passed(clock):
    memory, walked = LaneCursors(), []
    for place in range(3000):
        clock.now += 0.01
        walked.append(place - memory.begins().get(1, 0))
        memory.took([row(1, place)])

    walked = walked[500:]
    assert sorted(walked)[len(walked) // 2] <= 11  # a tenth of a second
    assert sum(steps > 100 for steps in walked) <= len(walked) / 90  # from the floor, once a second


def test_while_claims_come_back_full_each_begins_where_the_last_one_ended(clock):
    """500 each 5 ms: a tenth of a second would be 10,000 jobs to walk over, each time."""
    memory, place, walked = LaneCursors(), 0, []
    for _ in range(600):
        clock.now += 0.005
        begins = memory.begins()
        walked.append(place - begins.get(1, 0))
        place += 500
        memory.took([row(1, place - 1)], is_full=True, begins=begins)

    looks = sum(steps > 0 for steps in walked[200:])
    assert 18 <= looks <= 22  # each tenth of a second, in two: a look then finds a late commit behind us


@pytest.fixture
def busy(clock):
    """Cursors after full claims, all of one lane, the last of which ended at 2,000."""
    memory = LaneCursors()
    memory.begins()
    for last in (500, 1000, 1500, 2000):
        clock.now += 0.005
        memory.took([row(1, last)], is_full=True)
    return memory


def test_behind_a_claim_that_came_back_short_the_next_looks_at_what_was_passed_just_now(busy, clock):
    assert busy.begins() == {1: 2001}
    busy.took([row(1, 2010)], begins={1: 2001})
    assert busy.begins() == {}  # nothing was passed a tenth of a second ago

    busy.took([row(1, 2510)], is_full=True)
    assert busy.begins() == {1: 2511}
    busy.took([], begins={1: 2511})
    assert busy.begins() == {}


def test_a_claim_that_may_lie_for_a_while_does_not_begin_where_the_last_one_ended(busy):
    assert busy.would_begin() == {}


def test_a_claim_sent_behind_others_begins_where_they_must_have_ended(busy):
    assert busy.would_begin(coming=1000) == {1: 3001}


@pytest.mark.parametrize("others", [[row(2, 7)], [row(1, 2100), row(2, 7)]])
def test_where_jobs_came_of_more_than_one_lane_the_end_of_those_under_way_is_unknown(busy, others):
    busy.took(others, is_full=True)
    ended = busy.would_begin(coming=0)

    assert busy.would_begin(coming=1000) == ended
    for place in (8, 9, 10):
        busy.took([row(2, place)], is_full=True)
    assert busy.would_begin(coming=1000)[2] == (1011 if others == [row(2, 7)] else 11)


@pytest.mark.parametrize(
    ("first", "comes_short", "ended"),
    [
        ([row(2, 500)], False, {1: 2001, 2: 501}), ([row(1, 2300), row(2, 500)], False, {1: 2301, 2: 501}),
        ([row(1, 2300)], True, {1: 2301}),
    ],
)  # fmt: skip
def test_behind_one_that_began_further_than_those_before_it_came_the_next_begins_where_they_ended(
    busy, clock, first, comes_short, ended
):
    """Urgent jobs came between, or new ones in the places behind: some of what it stepped over is free."""
    behind = busy.would_begin(coming=500)
    busy.begin(behind)
    clock.now += 0.005
    busy.took(first, is_full=not comes_short, begins={1: 2001})
    busy.took([row(1, 3000)], is_full=True, begins=behind)

    assert busy.begins() == ended
    busy.took([row(1, 3500)], is_full=True, begins=ended)
    assert busy.would_begin(coming=500)[1] == 3501  # and the cursors do not guess


def test_a_look_that_finds_jobs_behind_us_is_not_followed_by_looks_without_end(busy, clock):
    """It did not come as far as the one behind it began: so that one stepped over some."""
    clock.now += 0.7
    look = busy.would_begin(coming=0)
    busy.begin(look)
    behind = busy.would_begin(coming=500)
    busy.begin(behind)
    busy.took([row(1, 100), row(1, 2490)], is_full=True, begins=look)  # one from behind, 499 new ones
    third = busy.would_begin(coming=500)
    busy.begin(third)
    busy.took([row(1, 3000)], is_full=True, begins=behind)
    fourth = busy.begins()
    busy.took([row(1, 3500)], is_full=True, begins=third)

    assert (behind, third, fourth) == ({1: 2501}, {1: 2991}, {1: 2491})
    busy.took([row(1, 4000)], is_full=True, begins=fourth)
    assert busy.begins() == {1: 4001}


def test_late_jobs_that_are_more_than_one_claim_takes_are_claimed_one_after_the_other(busy, clock):
    """A look has found them; those behind it, sent before that was known, claim elsewhere."""
    behind = busy.would_begin(coming=0)
    busy.took([row(1, 500)], is_full=True, begins={})
    busy.took([row(1, 2500)], is_full=True, begins=behind)

    assert busy.begins() == {1: 501}


def test_who_began_where_those_before_it_ended_or_found_nothing_changes_nothing(busy, clock):
    behind = busy.would_begin(coming=500)
    busy.begin(behind)
    clock.now += 0.005
    busy.took([row(1, 2500)], is_full=True, begins={1: 2001})
    busy.took([row(1, 3000)], is_full=True, begins=behind)
    assert busy.begins() == {1: 3001}

    too_far = busy.would_begin(coming=500)
    busy.took([row(2, 7)], is_full=True, begins={1: 3001})
    busy.took([], is_full=False, begins=too_far)
    busy.took([row(1, 3001)], is_full=True, begins={1: 3001})
    assert busy.begins() == {1: 3002, 2: 8}


def test_a_worker_that_claims_in_vain_between_its_jobs_looks_from_the_floor_once_a_second(clock):
    """A job each 20 ms, and a claim each 10: it has work, though each other claim brings none."""
    memory, looks = LaneCursors(), []
    for place in range(1000):
        clock.now += 0.01
        begins = memory.begins()
        looks.append(not begins)
        memory.took([row(1, place)] if place % 2 else [], begins=begins)

    assert 8 <= sum(looks[100:]) <= 10  # at first nothing is passed yet


def test_a_worker_with_nothing_to_do_looks_from_the_floor_each_tenth_of_a_second(clock):
    memory = LaneCursors()
    memory.took([row(1, 7)])
    looks = []
    for _ in range(100):
        clock.now += 0.03
        looks.append(memory.begins() == {})

    assert all(any(looks[at : at + 5]) for at in range(10, 90))
    assert not all(looks[10:])


def test_a_claim_that_lay_ready_for_too_long_is_not_sent(clock):
    """It was put down to begin at a place behind which it is time to look by now."""
    memory = LaneCursors()
    memory.took([row(1, 7)])
    clock.now += 0.2
    assert memory.begins() == {}
    clock.now += 0.05
    near = memory.would_begin()
    assert near == {1: 8}
    assert not memory.is_overtaken(near)
    clock.now += 0.1
    assert memory.is_overtaken(near)

    clock.now += 1.0
    assert memory.begins() == {}
    memory.took([row(1, 9)])
    clock.now += 0.15
    far = memory.would_begin()
    assert far == {1: 8}
    assert not memory.is_overtaken(far)
    clock.now += 1.0
    assert memory.is_overtaken(far)
    assert not memory.is_overtaken({})


def test_with_very_many_lanes_every_claim_looks_from_the_floor(clock):
    memory = LaneCursors()
    memory.took([row(lane, 7) for lane in range(100)])
    clock.now += 0.5
    memory.begins()
    clock.now += 0.05

    assert memory.begins() == {}


def test_a_claim_begins_where_it_is_told_and_never_before_the_floor(store):
    ids = store.run(calls.enqueue_many([new_job() for _ in range(4)]))
    (first, *_) = store.run(calls.claim(["default"], 1, lease=LEASE, claim=a_claim()))

    (told,) = store.run(
        calls.claim(["default"], 1, lease=LEASE, claim=a_claim(), begins={first.lane: ids[2]})
    )

    assert told.id == ids[2]
    assert [lease.job_id for lease in claim_many(store)] == [ids[1], ids[3]]


def a_claim() -> UUID:
    return uuid4()


def test_a_job_committed_behind_a_busy_worker_is_found(database, store):
    """Its place was drawn before those that the worker claims all the time."""
    ran = []

    async def work(n: int) -> None:
        ran.append(n)

    with psycopg.connect(database) as slow, working(database, work, config=quick()):
        (late,) = slow.execute(
            "select faultline.enqueue('work', '{\"n\": -1}')"
        ).fetchone()  # not committed yet
        until = time.monotonic() + 1.5
        number = 0
        while time.monotonic() < until:
            number += 1
            enqueue(store, task="work", args=f'{{"n": {number}}}')
            store.run(calls.wake("default"))
            time.sleep(0.01)
        slow.commit()
        for _ in range(100):
            number += 1
            enqueue(store, task="work", args=f'{{"n": {number}}}')
            store.run(calls.wake("default"))
            time.sleep(0.01)
        eventually(lambda: state_of(store, late) == "succeeded")
        eventually(lambda: len(ran) == number + 1)
    assert -1 in ran


def test_a_worker_that_is_to_stop_when_all_is_done_looks_from_the_floor_before_it_says_so(
    database, store, monkeypatch
):
    """What was committed behind its last claim is there, and it has not seen it yet."""
    monkeypatch.setattr(memories, "LOOK_SECONDS", 2.0)

    async def work() -> None:
        if slow.info.transaction_status:
            await asyncio.sleep(memories.LATE_SECONDS * 2)
            slow.commit()

    enqueue(store, task="work")
    with psycopg.connect(database) as slow:
        (late,) = slow.execute("select faultline.enqueue('work', '{}')").fetchone()  # not committed yet
        enqueue(store, task="work")
        assert drain(database, work) == 0

    assert state_of(store, late) == "succeeded"


def test_queues_that_are_looked_at_in_turn_are_found_empty_all_the_same(clock):
    """From the floor each is looked at ten times a second; that need never be in the same moment."""
    state = WorkerState(quick(queues={"narrow": 1, "wide": 2, "free": None}))

    async def nothing(params: Any, handler: Any) -> None:
        handler.take([])

    async def ask() -> int:
        backend: Any = SimpleNamespace(claim=nothing)
        claimer = claimer_of(state, backend)
        for late, memory in enumerate(claimer._cursors.values()):
            memory.took([row(1, 7)])
            clock.now += 0.3
            memory.begins()
            memory._looked_at = clock.now - late * 0.03
        for asked in range(20):
            if claimer.found_nothing.is_set():
                return asked
            await claimer._feed()
            clock.now += 0.02
        return 20

    asked = asyncio.run(ask())
    state.lease_table.close()
    assert 1 < asked < 20


def test_a_queue_at_its_limit_need_not_be_looked_at(clock):
    """No claim can take from it, so the look is never made, and would be due again and again."""
    state = WorkerState(quick(queues={"narrow": 1}))

    async def ask() -> list[bool]:
        claimer = claimer_of(state, SimpleNamespace())
        memory = claimer._cursors["narrow"]
        memory.begins()
        memory.took([row(1, 7)], is_full=True)
        memory.begins()
        clock.now += 0.2
        looks = []
        for running in (1, 0):
            state.in_queue["narrow"] = running
            looks.append(claimer._look_in() == 0.0)
        return looks

    try:
        assert asyncio.run(ask()) == [False, True]
    finally:
        state.lease_table.close()


def test_of_two_reasons_to_hold_claims_back_the_one_that_is_left_has_its_trial():
    """The other has none, for as long as it lasts; and only so long."""
    state = WorkerState(quick())

    async def ask() -> list[int]:
        state.hold_back("outcomes", 0.0)
        state.hold_back("beats")
        both = state.wanted()
        state.hold_back_no_more("beats")
        return [both, state.wanted()]

    try:
        assert asyncio.run(ask()) == [0, 1]
    finally:
        state.lease_table.close()


def test_a_late_claim_whose_leases_are_lost_has_not_found_nothing(clock):
    """There were jobs, and others have them now, or will."""
    state = WorkerState(quick())

    class Lossy:
        """Its first reply is lost; when asked again the claim is there, and its leases are lost."""

        async def claim(self, params: Any, handler: Any) -> None:
            raise ServerUnavailable("the reply was lost")

        async def recover_claim(self, params: Any) -> list[Any]:
            return []

    async def ask() -> set[str]:
        claimer = claimer_of(state, Lossy())
        assert await claimer._claim(claimer._shared, 10) == 0
        return claimer._empty

    try:
        assert asyncio.run(ask()) == set()
    finally:
        state.lease_table.close()
