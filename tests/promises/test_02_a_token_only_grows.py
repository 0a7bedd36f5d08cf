"""Rule 2: a token is order. It grows for a job and across jobs; the later lock has the higher token."""

from datetime import timedelta
from functools import partial

import pytest

from faultline.store import calls
from tests.promises.sessions import told_at_once
from tests.support import LEASE, NOW, claim_many, claim_one, enqueue


def drawn(db):
    """How many numbers the sequence has given out."""
    return db.execute(
        "select case when is_called then last_value else 0 end from faultline.tokens"
    ).fetchone()[0]


def test_a_fresh_installation_shows_1_2_3(store):
    for _ in range(3):
        enqueue(store)

    assert [claim_one(store).token for _ in range(3)] == [1, 2, 3]


def test_a_claim_draws_one_number_for_all_its_jobs(store, db):
    for _ in range(5):
        enqueue(store)

    leases = claim_many(store)

    assert [lease.token for lease in leases] == [1] * 5
    assert drawn(db) == 1


def test_a_claim_that_finds_nothing_draws_no_number(store, db):
    enqueue(store, queue="elsewhere")

    assert claim_many(store) == []

    assert drawn(db) == 0


def test_a_claim_whose_jobs_are_all_locked_draws_no_number(store, session, db):
    enqueue(store)
    holder = session()
    holder.begin()
    claim_one(holder)

    assert claim_many(store) == []

    assert drawn(db) == 1


def test_the_sequence_hands_out_one_number_at_a_time(db):
    """A session with a cache of numbers would draw a low one long after others drew higher ones."""
    cache, cycles, step = db.execute(
        "select seqcache, seqcycle, seqincrement from pg_sequence"
        " where seqrelid = 'faultline.tokens'::regclass"
    ).fetchone()

    assert (cache, cycles, step) == (1, False, 1)


def test_the_later_lock_has_the_higher_token(store, session):
    """A claim that waits before it has its rows must not come away with a number from before the wait."""
    enqueue(store)
    enqueue(store)
    first, second = session(), session()
    first.begin()
    first.sql("lock table faultline.active in access exclusive mode")
    later = second.start_sql(
        "select token from faultline.claim(array['default'], 1, '15 s', gen_random_uuid())"
    )
    second.until_waiting(later, behind=first)

    earlier = claim_one(first)
    first.commit()

    assert later.result(60)[0][0] > earlier.token


def test_a_token_grows_through_everything_that_can_happen_to_a_job(store, clock):
    job = enqueue(store)
    endings = [
        calls.release,
        lambda lease: calls.snooze(lease, timedelta(seconds=1)),
        lambda lease: calls.fail(lease, "boom", NOW),
        lambda lease: calls.bury(lease, "no good"),
    ]
    tokens = []
    for end in endings:
        lease = claim_one(store)
        tokens.append(lease.token)
        store.run(end(lease))
        clock.advance(seconds=2)
        if store.run(calls.get(job)).state == "dead":
            store.run(calls.replay(job))
        store.run(calls.promote())
    tokens.append(claim_one(store).token)
    clock.advance(LEASE * 2)
    store.run(calls.reap())
    store.run(calls.promote())
    tokens.append(claim_one(store).token)

    assert tokens == sorted(set(tokens))
    assert len(tokens) == len(endings) + 2


def test_a_token_is_raised_above_the_rows_last_one(store, db):
    """As after a restore that brought back the rows and not the sequence."""
    enqueue(store)
    enqueue(store)
    db.execute("update faultline.active set token = 500 where id = (select min(id) from faultline.active)")

    leases = claim_many(store)

    assert [lease.token for lease in leases] == [501, 1]


def test_a_claim_that_was_rolled_back_leaves_its_number_unused(store, session):
    enqueue(store)
    unlucky = session()
    unlucky.begin()
    lost = claim_one(unlucky)
    unlucky.rollback()

    assert claim_one(store).token > lost.token


def test_a_token_cannot_be_set_to_what_bigint_cannot_grow_from(store, db):
    enqueue(store)

    with pytest.raises(Exception, match="a_token_only_grows_from_0_and_stays_under_2_to_the_62"):
        db.execute("update faultline.active set token = 9223372036854775807")


def test_tokens_of_many_claimers_rise_in_the_order_of_their_commits(store, database, session):
    """Every claimer notes its token under one lock: the notes tell in which order the claims were made."""
    for _ in range(40):
        enqueue(store)
    claimers = [session() for _ in range(8)]
    session().sql("create table notes (place bigserial, token bigint)")

    def claim_and_note(claimer):
        for _ in range(5):
            with claimer.transaction():
                claimer.sql("select pg_advisory_xact_lock(1)")
                claimer.sql("insert into notes (token) values (%s)", claim_one(claimer).token)

    told = told_at_once([partial(claim_and_note, claimer) for claimer in claimers])

    tokens = [token for (token,) in session().sql("select token from notes order by place")]
    assert [error for error in told if error] == []
    assert tokens == sorted(set(tokens))
    assert len(tokens) == 40
