"""On a dead line a handler in its transaction block gets out when its lease ends, not when the line does."""

import json
from datetime import timedelta

import pytest

from faultline.task import spec_of
from tests.support import enqueue, outcomes, state_of
from tests.worker import dead_line_app as app
from tests.worker.harness import eventually, quick, rows, working

HERE = (app.in_a_query, app.between_queries, app.in_a_query_plainly, app.between_queries_plainly)
CHILDREN = ("query_in_a_child", "block_in_a_child")
SPECS = {spec.name: spec for spec in (*map(spec_of, HERE), *app.app.registry)}

SWALLOWED_LEASE = timedelta(seconds=2)

OUT_WITHIN = SWALLOWED_LEASE.total_seconds() + 6.0
"""Seconds: a lease and what a busy machine needs; with a word to the dead line first it takes 13 or more."""


@pytest.mark.parametrize("name", SPECS)
def test_a_handler_in_its_block_gets_out_though_the_line_is_dead(
    database, store, proxy, tmp_path, name, caplog
):
    """The way to the server swallows everything from there on, and for as long as the handler is in."""
    place = tmp_path / "notes"
    spec = SPECS[name]
    job = enqueue(store, task=name, args=json.dumps({"place": str(place)}), max_attempts=1)

    with working(proxy.dsn, spec, config=quick(lease_for=SWALLOWED_LEASE), watchdog=False) as worker:
        eventually(place.exists)
        proxy.hold()
        assert worker.worker is not None
        state = worker.worker._state
        eventually(lambda: not state.running and not state.abandoned, patience=OUT_WITHIN)
        if name not in CHILDREN:
            assert place.read_text().split() == ["in", "out"]
        proxy.flow()
        eventually(lambda: state_of(store, job) == "succeeded")

    assert set(outcomes(store, job)) <= {"released", "succeeded"}
    assert rows(database, "select max(attempt) from faultline.ledger") == [(1,)]
    assert "error ignored in rollback" not in caplog.text  # it was us who closed it
