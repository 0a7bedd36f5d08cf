"""Rule 3: the claim id tells two leases of one number apart, and is the right to act: it is never shown."""

import logging
from uuid import uuid4

import psycopg
import pytest

from faultline import errors
from faultline.lease import Lease
from faultline.store import calls
from tests.promises.verbs import FENCED
from tests.support import LEASE, claim_many, claim_one, contents, enqueue, worker_named


def forged(lease: Lease, **values) -> Lease:
    return lease._replace(**values)


@pytest.mark.parametrize("verb", FENCED)
def test_the_right_token_with_a_wrong_claim_is_refused(database, store, verb):
    """C11: the number is public, and to know it is not enough."""
    enqueue(store)
    lease = claim_one(store)
    before = contents(database)

    with pytest.raises(errors.LeaseLost) as refusal:
        store.run(FENCED[verb](forged(lease, claim=uuid4())))

    assert contents(database) == before
    assert str(lease.claim) not in f"{refusal.value} {refusal.value.__cause__}"


@pytest.mark.parametrize("verb", FENCED)
def test_the_right_claim_with_a_wrong_token_is_refused(database, store, verb):
    enqueue(store)
    lease = claim_one(store)
    before = contents(database)

    with pytest.raises(errors.LeaseLost):
        store.run(FENCED[verb](forged(lease, token=lease.token + 1)))

    assert contents(database) == before


@pytest.mark.parametrize("verb", FENCED)
def test_the_right_claim_with_a_wrong_job_is_refused(database, store, verb):
    """C11: a lease on one job is no lease on its neighbour, with or without a holder."""
    enqueue(store)
    enqueue(store)
    lease, neighbour = claim_one(store), claim_one(store)
    before = contents(database)

    with pytest.raises(errors.LeaseLost):
        store.run(FENCED[verb](forged(lease, job_id=neighbour.job_id)))

    assert contents(database) == before


def test_the_batch_verbs_refuse_what_the_single_ones_refuse(store, db):
    enqueue(store)
    lease = claim_one(store)
    wrong = [
        forged(lease, claim=uuid4()),
        forged(lease, token=lease.token + 1),
        forged(lease, job_id=lease.job_id + 1),
    ]

    answers = store.run(calls.complete_many(wrong, ["null"] * 3))
    failures = store.run(calls.fail_many(wrong, ["boom"] * 3, [LEASE] * 3))
    beats = store.run(calls.heartbeat(wrong, LEASE))

    assert [answer.answer for answer in (*answers, *failures)] == ["refused"] * 6
    assert [beat.answer for beat in beats] == ["lost"] * 3
    assert db.execute("select count(*) from faultline.active where claim is not null").fetchone() == (1,)
    # On record is what was held and lost; what never was a lease is refused and leaves no trace.
    assert db.execute("select count(*) from faultline.refusals").fetchone() == (0,)


@pytest.mark.parametrize("verb", FENCED)
def test_a_reissued_token_is_harmless(store, db, verb):
    """A standby that had not heard of the claim was promoted: the same job is given the same number again."""
    enqueue(store)
    (backup,) = db.execute("select row::text from faultline.active as row").fetchone()
    zombie = claim_one(store)
    db.execute("delete from faultline.active")
    db.execute("insert into faultline.active select (%s::faultline.active).*", [backup])
    db.execute("alter sequence faultline.tokens restart")
    owner = claim_one(store)
    assert (owner.job_id, owner.token) == (zombie.job_id, zombie.token)

    with pytest.raises(errors.LeaseLost):
        store.run(FENCED[verb](zombie))

    store.run(calls.complete(owner, "null"))
    assert store.run(calls.outcome(owner)) == "succeeded"
    assert store.run(calls.outcome(zombie)) == "gone"


def test_a_worker_whose_reply_was_lost_asks_again_and_gets_the_same_jobs(store, db):
    for _ in range(3):
        enqueue(store)
    claim = uuid4()
    lost_reply = claim_many(store, 2, claim=claim)

    told_again = claim_many(store, 2, claim=claim, resend=True)

    assert [(lease.job_id, lease.token) for lease in told_again] == [
        (lease.job_id, lease.token) for lease in lost_reply
    ]
    assert db.execute("select last_value from faultline.tokens").fetchone() == (1,)


def test_asking_again_for_a_claim_that_never_arrived_takes_nothing(store, db):
    enqueue(store)

    assert claim_many(store, claim=uuid4(), resend=True) == []

    assert db.execute("select claim from faultline.active").fetchone() == (None,)


def test_the_claim_is_in_no_view_and_in_no_answer(db):
    """By type: nothing a person or a dashboard can read of ours has a uuid in it."""
    shown = db.execute(
        "select class.relname, attribute.attname from pg_attribute as attribute"
        " join pg_class as class on class.oid = attribute.attrelid"
        " where class.relnamespace = 'faultline'::regnamespace and class.relkind in ('v', 'm')"
        " and (attribute.atttypid = 'uuid'::regtype or attribute.attname = 'claim')"
    ).fetchall()
    answered = db.execute(
        "select proname from pg_proc where pronamespace = 'faultline'::regnamespace and prosecdef"
        " and (prorettype in ('uuid'::regtype, 'faultline.active'::regtype, 'faultline.ledger'::regtype)"
        " or exists (select from unnest(proallargtypes, proargmodes) as given (type, mode)"
        "            where mode in ('o', 't') and type = 'uuid'::regtype))"
    ).fetchall()

    assert shown == []
    assert answered == []


def test_nothing_a_person_reads_of_a_running_or_ended_job_holds_its_claim(store, db):
    enqueue(store)
    enqueue(store)
    ended, running = claim_many(store, worker=worker_named(store, "someone"))
    store.run(calls.complete(ended, "null"))
    store.run(calls.refused(ended))
    views = db.execute(
        "select relname from pg_class where relnamespace = 'faultline'::regnamespace and relkind = 'v'"
    ).fetchall()

    read = [str(db.execute(f'select * from faultline."{view}"').fetchall()) for (view,) in views]
    read += [
        repr(running),
        repr(ended),
        str(store.run(calls.list_jobs())),
        str(store.run(calls.history(ended.job_id))),
    ]

    assert not [text for text in read if str(running.claim) in text]


def test_a_refusal_tells_nothing_of_the_claim_that_has_the_job(store, database, caplog):
    caplog.set_level(logging.DEBUG)
    enqueue(store)
    lease = claim_one(store)

    with pytest.raises(psycopg.errors.Error) as refusal, psycopg.connect(database) as conn:
        conn.execute("select faultline.complete(%s, %s, %s)", [lease.job_id, lease.token, uuid4()])

    diag = refusal.value.diag
    told = f"{diag.message_primary} {diag.message_detail} {diag.message_hint} {diag.context} {caplog.text}"
    assert refusal.value.sqlstate == "LS001"
    assert str(lease.claim) not in told
