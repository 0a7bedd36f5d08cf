"""Case D16, small: with autovacuum off, a claim does not walk through all that was done before it."""

import re
from uuid import uuid4

import psycopg

from faultline.store import calls
from tests.support import claim_many, enqueue, new_job

JOBS = 6000


def pages_of_a_claim(db) -> int:
    """How many pages one claim of one job touches, by the server's own count."""
    plan = db.execute(
        "explain (analyze, buffers, timing off, costs off)"
        " select * from faultline.claim(array['default'], 1, interval '15 seconds', %s)",
        [uuid4()],
    ).fetchall()
    hit, read = re.search(r"shared hit=(\d+)(?: read=(\d+))?", plan[1][0]).groups()
    return int(hit) + int(read or 0)


def test_d16_a_claim_touches_few_pages_of_a_table_that_is_never_vacuumed(database, store, db, clock):
    db.execute("alter table faultline.active set (autovacuum_enabled = off)")
    with psycopg.connect(database) as pin:
        pin.execute("select pg_current_xact_id()")  # so that no scan may mark what is dead either
        store.run(calls.enqueue_many([new_job()] * JOBS))
        while leases := claim_many(store, 500):
            store.run(calls.complete_many(leases, ["null"] * len(leases)))
        store.run(calls.floors())
        clock.advance(seconds=2)
        assert store.run(calls.floors()) == 1
        (pages,) = db.execute("select pg_relation_size('faultline.active') / 8192").fetchone()
        assert pages > 200

        # The least of four: the first call of a session reads the catalog, and so does one after an ANALYZE.
        touched = []
        for _ in range(4):
            enqueue(store)
            touched.append(pages_of_a_claim(db))
    assert min(touched) < pages / 4
