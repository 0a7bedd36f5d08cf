"""Rule 11: a job that is being moved is waited for and then acted on, never answered "not found"."""

from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from faultline.store.call import Call
from tests.promises.rewriting import rewrite
from tests.promises.verbs import SETTLING, Verb
from tests.support import LEASE, NOW, claim_one, enqueue, state_of

CHASED = 4101  # the first of the advisory locks at which a chase is stopped


class Ask(NamedTuple):
    """A way to ask for a job by its id: in which states it is welcome, and which state it leaves."""

    call: Any
    welcome: frozenset[str]
    leaves: str


ASKS = {
    "cancel": Ask(calls.cancel, frozenset({"queued", "running", "cancelled"}), "cancelled"),
    "retry_now": Ask(calls.retry_now, frozenset({"queued"}), "queued"),
    "replay": Ask(calls.replay, frozenset({"dead"}), "queued"),
}


class Move(NamedTuple):
    """A way in which a job changes its place: from which state to which."""

    before: str
    after: str
    call: Verb


MOVES = {
    "promote": Move("waiting", "queued", lambda _: calls.promote()),
    "retry_now": Move("waiting", "queued", lambda job: calls.retry_now(job.job_id)),
    "cancel a waiting job": Move("waiting", "cancelled", lambda job: calls.cancel(job.job_id)),
    "cancel a queued job": Move("queued", "cancelled", lambda job: calls.cancel(job.job_id)),
    "claim": Move("queued", "running", lambda job: claim_of(job)),
    "reap": Move("running", "queued", lambda _: calls.reap()),
    "replay": Move("dead", "queued", lambda job: calls.replay(job.job_id)),
    "replay_many": Move("dead", "queued", lambda _: calls.replay_many()),
    "complete": Move("running", "succeeded", SETTLING["complete"]),
    "fail": Move("running", "queued", SETTLING["fail"]),
    "snooze": Move("running", "queued", SETTLING["snooze"]),
    "release": Move("running", "queued", SETTLING["release"]),
    "bury": Move("running", "dead", SETTLING["bury"]),
    "cancel_claimed": Move("running", "cancelled", SETTLING["cancel_claimed"]),
}


class Waiting(NamedTuple):
    """A job that is not leased: all a mover needs of it is its id and its queue."""

    job_id: int
    queue: str


def claim_of(job: Any) -> Call[Any]:
    return calls.claim([job.queue], 1, lease=LEASE, claim=uuid4())


def bring_to(state: str, store, clock, queue: str) -> Any:
    """A job of its own queue in a state, as a lease where it is running."""
    if state == "waiting":
        job = enqueue(store, queue=queue, delay=timedelta(minutes=1))
        clock.advance(minutes=2)
        return Waiting(job, queue)
    job = enqueue(store, queue=queue)
    if state == "queued":
        return Waiting(job, queue)
    lease = claim_one(store, queues=(queue,))
    clock.advance(LEASE * 2)
    if state == "dead":
        store.run(calls.bury(lease, "no good"))
    return lease


@pytest.mark.parametrize("end", ["commit", "rollback"])
@pytest.mark.parametrize("move", MOVES)
def test_a_verb_called_while_a_job_moves_waits_and_then_acts(store, clock, session, move, end):
    mover, asker = session(), session()
    before, after, call = MOVES[move]
    for name, ask in ASKS.items():
        job = bring_to(before, store, clock, queue=name)
        mover.begin()
        mover.run(call(job))

        answer = asker.start_waiting(ask.call(job.job_id), behind=mover)
        mover.sql(end)
        told = answer.exception(10)

        met = (after if end == "commit" else before).replace("waiting", "queued")
        if met in ask.welcome:
            assert (name, told) == (name, None)
            assert state_of(store, job.job_id) == ask.leaves
        else:
            assert (name, type(told)) == (name, errors.WrongState)
            assert f"is {met}" in str(told)
            assert state_of(store, job.job_id) == met


def test_a_job_that_moved_twice_while_we_waited_is_found(store, clock, session):
    """Promoted, claimed and failed in one transaction: back in the table we looked at, as another row."""
    job = bring_to("waiting", store, clock, "default").job_id
    mover, asker = session(), session()
    mover.begin()
    mover.run(calls.promote())
    mover.run(calls.fail(claim_one(mover), "boom", LEASE))

    answer = asker.start_waiting(calls.cancel(job), behind=mover)
    mover.commit()

    assert answer.exception(10) is None
    assert state_of(store, job) == "cancelled"


def test_a_job_that_moves_faster_than_we_look_is_chased(database, store, clock, session):
    """Every time the asker has looked, and before it locks what it saw, the job moves on."""
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("create sequence faultline.looks")
    place = "place := faultline.where_is(lock_job.job_id);"
    stop = f"perform pg_advisory_xact_lock_shared({CHASED} - 1 + nextval('faultline.looks'));"
    rewrite(database, "lock_job", place, f"{place} {stop}")
    job = bring_to("waiting", store, clock, "default").job_id
    gate, asker = session(), session()
    for look in range(3):
        gate.sql("select pg_advisory_lock(%s)", CHASED + look)

    answer = asker.start_waiting(calls.cancel(job), behind=gate)
    store.run(calls.promote())  # it had seen it in later
    gate.sql("select pg_advisory_unlock(%s)", CHASED)
    asker.until_waiting(answer, behind=gate)
    store.run(calls.fail(claim_one(store), "boom", NOW))  # it had seen it in active
    gate.sql("select pg_advisory_unlock(%s)", CHASED + 1)
    asker.until_waiting(answer, behind=gate)
    gate.sql("select pg_advisory_unlock(%s)", CHASED + 2)

    assert answer.exception(10) is None
    assert state_of(store, job) == "cancelled"


@pytest.mark.parametrize("ask", ASKS)
def test_what_never_was_is_not_found_at_once(session, ask):
    with pytest.raises(errors.JobNotFound, match="there is no job 4711"):
        session().run_at_once(ASKS[ask].call(4711))


def test_a_success_in_a_queue_that_keeps_nothing_is_not_found_and_the_message_says_why(store, session):
    """The one end that leaves no row: the answer is true, and its hint names the reason."""
    store.run(calls.set_retention("default", "nothing"))
    job = enqueue(store)
    lease = claim_one(store)
    worker, asker = session(), session()
    worker.begin()
    worker.run(calls.complete(lease, "null"))

    answer = asker.start_waiting(calls.cancel(job), behind=worker)
    worker.commit()

    assert isinstance(answer.exception(10), errors.JobNotFound)
    assert "keeps nothing" in str(answer.exception())


def test_a_cancel_that_was_answered_lets_no_attempt_commit(store, clock, session):
    """C9: whatever stood between cancel and commit, after the answer there is no effect."""
    enqueue(store)
    lease = claim_one(store)
    store.run(calls.cancel(lease.job_id, "not wanted"))

    for settle in SETTLING.values():
        with pytest.raises(errors.LeaseLost) as refusal:
            store.run(settle(lease))
        assert refusal.value.reason == "cancelled"
    (beat,) = store.run(calls.heartbeat([lease], LEASE))
    assert beat.answer == "cancel"
