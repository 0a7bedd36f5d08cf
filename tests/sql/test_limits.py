"""queued (at a gate) -> queued (due): limits in total, per key and as a rate."""

import json
from datetime import timedelta

import pytest

from faultline.errors import OutOfBounds
from faultline.limit import Limit
from faultline.store import calls
from tests.support import NOW, claim_many, claim_one, enqueue, new_job, outcomes, state_of

HOUR = timedelta(hours=1)


def tie(store, limit, task="test_task", name="api"):
    store.run(calls.set_limit(name, limit))
    store.run(calls.limit_task(task, name, limit.key_path))


def of_tenant(*tenants, **options):
    return [new_job(args=json.dumps({"tenant": tenant}), **options) for tenant in tenants]


def put(store, *tenants, **options):
    return store.run(calls.enqueue_many(of_tenant(*tenants, **options)))


def ids_of(leases):
    return [lease.job_id for lease in leases]


def test_no_more_jobs_of_a_key_are_leased_than_its_limit(store):
    tie(store, Limit(per_key=2, key="tenant"))
    first = put(store, "a", "a", "a", "b")

    held = claim_many(store)

    assert ids_of(held) == [first[0], first[1], first[3]]
    assert claim_many(store) == []
    store.run(calls.complete(held[0], None))
    assert ids_of(claim_many(store)) == [first[2]]


def test_an_admitted_job_holds_its_slot_before_it_is_claimed(store):
    tie(store, Limit(total=1))
    plain = store.run(calls.enqueue(new_job("other")))
    limited = put(store, "a", "b")

    assert ids_of(claim_many(store, 1)) == [plain]  # one of the limited ones was admitted behind it
    assert len(claim_many(store)) == 1
    assert claim_many(store) == []
    assert len(limited) == 2
