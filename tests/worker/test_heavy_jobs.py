"""Jobs so heavy that a claim brings fewer than were asked for: there are more, and they need not wait."""

import json
from contextlib import contextmanager

from faultline.store import calls
from faultline.worker.claiming.claimer import Claimer
from tests.support import new_job
from tests.worker.harness import eventually, quick, rows, working

SUCCEEDED = "select count(*) from faultline.ledger where outcome = 'succeeded'"


async def read(text: str) -> None: ...


def heavy_jobs(store, count: int, chars: int) -> None:
    job = new_job(task="read", args=json.dumps({"text": "x" * chars}))
    for _ in range(count // 10):
        store.run(calls.enqueue_many([job] * 10))


@contextmanager
def counting_rests(monkeypatch):
    """How many jobs had come each time that a claimer took a rest."""
    rests, rest = [], Claimer._rest

    async def counted(claimer, pause):
        rests.append(claimer.state.settled_count + claimer.state.held_count)
        await rest(claimer, pause)

    monkeypatch.setattr(Claimer, "_rest", counted)
    yield rests


def test_claims_that_are_cut_short_by_their_weight_follow_at_once(database, store, monkeypatch):
    heavy_jobs(store, 40, 1_000_000)  # of which a claim brings 16

    with counting_rests(monkeypatch) as rests, working(database, read, config=quick(jobs_max=100)):
        eventually(lambda: rows(database, SUCCEEDED) == [(40,)])

    assert [come for come in rests if come < 40] == []
