"""Whatever a person does is noted in the same transaction: who, when, what, on what, why."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from faultline.errors import WrongState
from faultline.server.auth import Caller
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import NOW, claim_one, enqueue, state_of

ANN = Caller("ann", frozenset({"operate"}), None, "c0ffeec0ffee")


def buried(store, **options):
    job_id = enqueue(store, **options)
    store.run(calls.bury(claim_one(store, queues=(options.get("queue", "default"),)), "no use"))
    return job_id


def later(store):
    job_id = enqueue(store)
    store.run(calls.fail(claim_one(store), "boom", timedelta(hours=1)))
    return job_id


def test_a_caller_is_noted_with_the_reason(acted, store):
    job_id = enqueue(store, queue="mail")

    acted(ANN, "a customer asked", calls.cancel(job_id))

    (noted,) = store.run(calls.acts())
    assert (noted.actor, noted.verb, noted.job_id, noted.queue, noted.reason) == (
        "ann (key c0ffeec0ffee)", "cancel", job_id, "mail", "a customer asked",
    )  # fmt: skip


def test_an_act_that_fails_leaves_neither_deed_nor_note(acted, store):
    job_id = enqueue(store)

    with pytest.raises(WrongState):
        acted(ANN, "too hasty", calls.pause("default"), calls.replay(job_id))

    assert store.run(calls.acts()) == []
    assert state_of(store, job_id) == "queued"
    assert not store.run(calls.list_queues())[0].paused


def test_the_next_user_of_the_connection_acts_for_itself(aio, astore, acted, store):
    acted(ANN, "mine", calls.pause("mail"))
    aio(astore.run(calls.resume("mail")))

    resumed, paused = store.run(calls.acts())
    assert (paused.actor, paused.reason) == ("ann (key c0ffeec0ffee)", "mine")
    assert (resumed.actor, resumed.reason) == (resumed.role, None)


def test_with_psql_it_is_the_role(db, store):
    db.execute("select faultline.pause('mail')")

    (user,) = db.execute("select session_user").fetchone()
    (noted,) = store.run(calls.acts())
    assert (noted.actor, noted.role, noted.queue) == (user, user, "mail")


def test_a_session_that_says_it_is_another_is_noted_with_its_role(db, store):
    with db.transaction():
        db.execute("set local role to default")
        db.execute("select faultline.act_as('another user')")
        db.execute("select faultline.pause('mail')")

    (user,) = db.execute("select session_user").fetchone()
    (noted,) = store.run(calls.acts())
    assert (noted.actor, noted.role) == ("another user", user)


ACTS: dict[str, Callable[[Store], Any]] = {
    "cancel": lambda store: store.run(calls.cancel(enqueue(store), "why not")),
    "retry_now": lambda store: store.run(calls.retry_now(later(store))),
    "replay": lambda store: store.run(calls.replay(buried(store))),
    "replay_many": lambda store: (buried(store), store.run(calls.replay_many())),
    "pause": lambda store: store.run(calls.pause("mail")),
    "resume": lambda store: (enqueue(store), store.run(calls.resume("default"))),
    "set_retention": lambda store: store.run(calls.set_retention("mail", "outline")),
    "configure": lambda store: store.run(calls.configure(default_lease=timedelta(seconds=20))),
    "create_key": lambda store: store.run(calls.create_key("c0ffeec0ffee", bytes(32), "n", ["read"])),
    "revoke_key": lambda store: (ACTS["create_key"](store), store.run(calls.revoke_key("c0ffeec0ffee"))),
    "rotate_key": lambda store: (
        ACTS["create_key"](store),
        store.run(calls.rotate_key("c0ffeec0ffee", "facadefacade", bytes(32), NOW)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("verb", ACTS)
def test_each_verb_of_an_operator_notes_itself(store, verb):
    ACTS[verb](store)

    noted = store.run(calls.acts(most=1))
    assert [act.verb for act in noted] == [verb]
    assert noted[0].job_id is not None or noted[0].queue is not None or noted[0].detail


def test_many_replayed_at_once_are_noted_one_by_one(store):
    ids = [buried(store, queue=queue) for queue in ("mail", "mail", "sms")]

    store.run(calls.replay_many(queue="mail"))

    assert sorted(act.job_id for act in store.run(calls.acts())) == ids[:2]
    assert [act.verb for act in store.run(calls.acts(job_id=ids[0]))] == ["replay_many"]
    assert store.run(calls.acts(job_id=ids[2])) == []


def test_what_workers_and_producers_do_all_day_is_no_act(store):
    job_id = enqueue(store)
    lease = claim_one(store)
    store.run(calls.complete(lease, None))
    buried(store)
    later(store)

    assert store.run(calls.acts()) == []
    assert state_of(store, job_id) == "succeeded"


def test_what_changed_nothing_is_no_act(store):
    job_id = enqueue(store)
    store.run(calls.retry_now(job_id))
    store.run(calls.cancel(job_id))
    store.run(calls.cancel(job_id))

    assert [act.verb for act in store.run(calls.acts())] == ["cancel"]


def test_acts_come_page_by_page(store):
    for queue in ("a", "b", "c"):
        store.run(calls.pause(queue))

    first = store.run(calls.acts(most=2))
    rest = store.run(calls.acts(before=first[-1].id, most=2))

    assert [act.queue for act in (*first, *rest)] == ["c", "b", "a"]
    assert [act.queue for act in store.run(calls.acts(queue="b"))] == ["b"]
    assert store.run(calls.acts(verb="resume")) == []


def test_acts_are_kept_for_a_year_or_as_long_as_is_set(store, clock):
    store.run(calls.pause("mail"))
    clock.advance(days=360)
    early = store.run(calls.prune())
    store.run(calls.configure(acts_retention=timedelta(days=30)))

    pruned = store.run(calls.prune())

    assert early[-1] == 0
    assert pruned[-1] == 1
    assert [act.verb for act in store.run(calls.acts())] == ["configure"]
