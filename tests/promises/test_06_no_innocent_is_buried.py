"""Rule 6 and the suspects: a crash is held against a job only when it was alone; and it is no loop."""

from faultline.store import calls
from tests.support import LEASE, NOW, Clock, claim_one, enqueue, outcomes, state_of


def crash(store, *, alone, **options):
    """Claim the one job and have it crash."""
    lease = claim_one(store)
    told = store.run(
        calls.crash(lease, "HandlerDied: boom", "SIGSEGV", alone=alone, delay=NOW, max_crashes=3, **options)
    )
    store.run(calls.promote())
    return told


def crashes(db, place="active"):
    """How often the one job has crashed, and how often alone."""
    return db.execute(f"select crashes, crashes_alone from faultline.{place}").fetchone()


def test_a_job_dies_of_its_third_crash_alone_and_the_signature_is_kept(store, db):
    job = enqueue(store, max_attempts=10)

    assert [crash(store, alone=True) for _ in range(3)] == ["queued", "queued", "dead"]

    info = store.run(calls.get(job))
    assert (info.state, info.attempt, info.crashes) == ("dead", 3, 3)
    assert info.error == "out of crashes: crashed alone 3 times, at last by SIGSEGV: HandlerDied: boom"
    assert outcomes(store, job) == ["failed", "failed", "dead"]
    assert {entry.error for entry in store.run(calls.history(job))} == {"HandlerDied: boom"}
    assert crashes(db, "dead") == (3, 3)


def test_crashes_beside_others_bury_no_job(store, db):
    """A neighbour takes its process with it again and again: these crashes are counted against no job."""
    job = enqueue(store, max_attempts=10)

    for _ in range(9):
        assert crash(store, alone=False) == "queued"

    assert crashes(db) == (9, None)
    assert state_of(store, job) == "queued"


def test_a_worker_that_died_is_no_crash_alone(store, clock: Clock, db):
    """A reaper that takes back a lease cannot know which of that worker's jobs killed the worker."""
    job = enqueue(store, max_attempts=10)
    for _ in range(2):
        crash(store, alone=True)
    for _ in range(4):
        claim_one(store)
        clock.advance(LEASE * 2)
        store.run(calls.reap())
        clock.advance(minutes=5)
        store.run(calls.promote())

    assert crashes(db) == (6, 2)
    assert state_of(store, job) == "queued"
    assert crash(store, alone=True) == "dead"


def test_crashes_alone_are_remembered_wherever_the_job_goes(store, db):
    """Given back, put off, promoted, retried by hand, failed: nothing but a replay forgets them."""
    job = enqueue(store, max_attempts=10)
    crash(store, alone=True)
    store.run(calls.release(claim_one(store)))
    assert crashes(db) == (1, 1)
    store.run(calls.snooze(claim_one(store), LEASE))
    assert crashes(db, "later") == (1, 1)
    store.run(calls.retry_now(job))
    assert crashes(db) == (1, 1)
    store.run(calls.fail(claim_one(store), "no luck", NOW))
    store.run(calls.promote())
    assert crashes(db) == (1, 1)

    store.run(calls.bury(claim_one(store), "enough"))
    assert crashes(db, "dead") == (1, 1)
    store.run(calls.replay(job))
    assert crashes(db) == (0, None)


def test_without_a_budget_of_crashes_only_attempts_count(store, db):
    job = enqueue(store, max_attempts=4)
    for _ in range(4):
        store.run(calls.crash(claim_one(store), "boom", "exit code 7", alone=True, delay=NOW))
        store.run(calls.promote())

    info = store.run(calls.get(job))
    assert (info.state, info.error) == ("dead", "out of attempts: boom")


def test_a_crash_whose_retry_rules_name_no_delay_waits_as_long_as_any_other(store, db):
    """As after a reap: nothing the first time, then doubling."""
    enqueue(store, max_attempts=10)
    waits = []
    for _ in range(3):
        store.run(calls.crash(claim_one(store), "boom", "exit code 7", alone=False))
        waits.append(
            db.execute(
                "select round(extract(epoch from run_at - entry.settled_at)) from faultline.later"
                " join faultline.ledger as entry on entry.token = later.token"
            ).fetchone()[0]
        )
        db.execute("update faultline.later set run_at = now()")
        store.run(calls.promote())

    assert waits == [0, 1, 2]
