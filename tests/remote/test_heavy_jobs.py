"""Jobs so heavy that a server grants fewer than were asked for: there are more, and they need not wait."""

from tests.remote.harness import working
from tests.worker.harness import eventually, quick, rows
from tests.worker.test_heavy_jobs import SUCCEEDED, counting_rests, heavy_jobs, read


def test_grants_that_are_cut_short_by_their_weight_follow_at_once(served, database, store, monkeypatch):
    heavy_jobs(store, 40, 100_000)  # of which a server grants 10 at once

    with counting_rests(monkeypatch) as rests, working(served, read, config=quick(jobs_max=100)):
        eventually(lambda: rows(database, SUCCEEDED) == [(40,)])

    assert [come for come in rests if come < 40] == []
