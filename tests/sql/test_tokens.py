"""The token is order: it only grows, for a job and across jobs, on whatever server."""

from datetime import timedelta

from faultline.store import calls
from tests.support import NOW, all_at_once, claim_many, claim_one, enqueue, new_job

EPOCH = 1 << 40


def test_a_fresh_installation_counts_1_2_3(store):
    store.run(calls.enqueue_many([new_job() for _ in range(3)]))

    assert [claim_one(store).token for _ in range(3)] == [1, 2, 3]


def test_a_claim_that_finds_nothing_draws_no_number(store):
    for _ in range(5):
        claim_many(store)
    enqueue(store)

    assert claim_one(store).token == 1


def test_all_jobs_of_one_claim_share_its_number(store):
    store.run(calls.enqueue_many([new_job() for _ in range(3)]))

    assert {lease.token for lease in claim_many(store)} == {1}


def test_a_jobs_token_grows_with_every_claim(store):
    enqueue(store, max_attempts=10)
    tokens = []

    for _ in range(4):
        lease = claim_one(store)
        tokens.append(lease.token)
        store.run(calls.fail(lease, "boom", NOW))
        store.run(calls.promote())

    assert tokens == sorted(set(tokens))


def test_claims_of_one_job_at_once_still_grow(store):
    """The number is drawn after the row is locked, so the later lock draws the higher number."""
    enqueue(store, max_attempts=10_000)

    def take_and_release(_):
        taken = claim_many(store, 1)
        for lease in taken:
            store.run(calls.release(lease))
        return taken

    all_at_once(16, lambda n: [take_and_release(n) for _ in range(5)])

    tokens = [entry.token for entry in store.run(calls.ledger(most=500))]
    assert len(tokens) > 1
    settled = sorted((entry.settled_at, entry.token) for entry in store.run(calls.ledger(most=500)))
    assert [token for _, token in settled] == sorted(set(tokens))


def test_a_claim_rises_above_the_rows_last_token(store, db):
    """An old backup or an import may hold numbers that the sequence has not reached."""
    enqueue(store)
    db.execute("update faultline.active set token = 1000")

    assert claim_one(store).token == 1001


def test_another_server_starts_above_all_that_was_issued_before(store, db):
    """pg_upgrade, dump and restore: the system identifier differs, and the timeline starts again."""
    enqueue(store, max_attempts=10)
    before = claim_one(store)
    store.run(calls.release(before))
    db.execute("update faultline.settings set system_identifier = 42, server_started = '-infinity'")

    after = claim_one(store)

    assert after.token > EPOCH > before.token


def test_a_timeline_that_started_again_raises_the_base(store, db):
    """The row remembers timeline 5 and the server is on its first: what 5 issued is stepped over."""
    db.execute("update faultline.settings set timeline = 5, server_started = '-infinity'")
    enqueue(store)

    token = claim_one(store).token

    highest_of_timeline_5 = 5 * EPOCH - 1
    assert token > highest_of_timeline_5
    assert db.execute("select base, timeline from faultline.settings").fetchone() == (5, 1)


def test_a_promotion_raises_the_epoch_by_itself(store, db):
    """A promoted standby is one timeline on: a higher epoch, whatever claims it lost."""
    db.execute("update faultline.settings set timeline = 0, base = 1, server_started = '-infinity'")
    enqueue(store)

    token = claim_one(store).token

    assert token > EPOCH
    assert db.execute("select base, timeline from faultline.settings").fetchone() == (1, 1)


def test_the_base_is_raised_once_by_many_claims(store, db):
    store.run(calls.enqueue_many([new_job() for _ in range(16)]))
    db.execute("update faultline.settings set system_identifier = 42, server_started = '-infinity'")

    tokens = all_at_once(8, lambda _: claim_one(store).token)

    assert db.execute("select base from faultline.settings").fetchone()[0] == 1
    assert all(EPOCH < token < 2 * EPOCH for token in tokens)


def test_a_raised_base_lasts(store, db):
    store.run(calls.enqueue_many([new_job() for _ in range(2)]))
    db.execute("update faultline.settings set system_identifier = 42, server_started = '-infinity'")

    first, second = claim_one(store), claim_one(store)

    assert second.token == first.token + 1


def test_a_replayed_job_keeps_its_token_below_the_next(store):
    enqueue(store)
    first = claim_one(store)
    store.run(calls.bury(first, "no use"))

    store.run(calls.replay(first.job_id))

    assert store.run(calls.get(first.job_id)).token == first.token
    assert claim_one(store).token > first.token


def test_a_snoozed_job_keeps_its_token_below_the_next(store, clock):
    enqueue(store)
    first = claim_one(store)
    store.run(calls.snooze(first, timedelta(seconds=5)))
    clock.advance(seconds=6)
    store.run(calls.promote())

    assert claim_one(store).token > first.token
