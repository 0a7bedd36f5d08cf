"""Behind the jobs of another app: a claim does not walk over them each time, and passes none of its own."""

import psycopg
import pytest

from faultline.store import calls
from faultline.worker.claiming import floor_looks
from faultline.worker.claiming.floor_looks import FLOOR_SECONDS, FLOOR_SECONDS_MAX, FloorLooks
from tests.support import StillTime, claim_many, enqueue, new_job, state_of, still_time
from tests.worker.harness import eventually, working


async def ours() -> None: ...


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> StillTime:
    return still_time(monkeypatch)


def look(looks: FloorLooks, still: StillTime, seconds: float, *, is_full: bool = False) -> None:
    sent = still.now
    still.now += seconds
    looks.looked(sent, is_full=is_full)


def test_a_place_counts_after_a_second_look(still):
    looks = FloorLooks()
    look(looks, still, 0.1)
    assert (looks.start, looks.wants_mark) == (None, True)

    looks.mark(100, still.now)
    assert looks.start is None
    look(looks, still, 0.1)
    assert looks.start is None  # too soon: a job with an earlier place may commit yet
    still.now += looks.seconds
    look(looks, still, 0.1)

    assert (looks.start, looks.wants_mark) == (100, True)


def test_a_look_that_was_filled_says_nothing_of_what_it_did_not_reach(still):
    looks = FloorLooks()
    look(looks, still, 0.1)
    looks.mark(100, still.now)
    still.now += 1
    look(looks, still, 0.1, is_full=True)

    assert looks.start is None


def test_quick_looks_pass_nothing(still):
    looks = FloorLooks()
    look(looks, still, 0.001)
    assert (looks.start, looks.wants_mark, looks.seconds) == (None, False, FLOOR_SECONDS)

    looks.start = 100
    look(looks, still, 0.001)
    assert looks.start is None


@pytest.mark.parametrize(("walk", "seconds"), [(0.01, FLOOR_SECONDS), (0.1, 5.0), (60.0, FLOOR_SECONDS_MAX)])
def test_slow_looks_are_made_less_often(still, walk, seconds):
    looks = FloorLooks()
    look(looks, still, walk, is_full=True)

    assert looks.seconds == pytest.approx(seconds)


def test_the_way_to_the_server_is_no_walk(still):
    looks = FloorLooks()
    asked_at = still.now
    still.now += 0.1
    looks.mark(100, asked_at)
    look(looks, still, 0.1)

    assert (looks.start, looks.seconds) == (None, FLOOR_SECONDS)


def test_a_claim_begins_at_the_newest_place_in_every_lane(store):
    behind = [enqueue(store, priority=priority) for priority in (0, 5)]
    place = store.run(calls.newest_place()) + 1
    ahead = [enqueue(store, priority=priority) for priority in (0, 5)]

    assert [lease.job_id for lease in claim_many(store, begins={0: place})] == ahead
    assert [lease.job_id for lease in claim_many(store)] == behind


def test_a_worker_passes_another_apps_jobs_and_finds_its_own(database, store, monkeypatch):
    """A job that commits behind the place that claims begin at is found by the next look from the floor."""
    monkeypatch.setattr(floor_looks, "SLOW_SECONDS", -1.0)
    store.run(calls.enqueue_many([new_job(task="theirs")] * 50))
    with working(database, ours) as app, psycopg.connect(database) as late:
        late.execute("select faultline.enqueue('ours')")

        def begins_further() -> bool:
            enqueue(store, task="ours")
            return (app.worker._claimer._cursors[""].floor_looks.start or 0) > 51

        eventually(begins_further)
        job = enqueue(store, task="ours")
        eventually(lambda: state_of(store, job) == "succeeded")
        late.commit()
        eventually(lambda: late.execute("select 1 from faultline.ledger where job_id = 51").fetchall())
