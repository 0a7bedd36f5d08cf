"""Rule 2: no server issues a lower token than the last one; the epoch rises with each of them."""

from tests.promises.sessions import told_at_once
from tests.support import claim_one, enqueue

STEP = 1 << 40


def base_and_timeline(db):
    return db.execute("select base, timeline from faultline.settings").fetchone()


def become_another_server(db):
    """As pg_upgrade, or a dump restored on a new server, leaves the settings."""
    db.execute(
        "update faultline.settings"
        " set system_identifier = system_identifier + 1, server_started = '-infinity'"
    )


def test_another_server_issues_higher_tokens(store, db):
    enqueue(store)
    enqueue(store)
    before = claim_one(store).token
    become_another_server(db)

    after = claim_one(store).token

    assert (before, after) == (1, STEP + 2)
    assert base_and_timeline(db) == (1, 1)


def test_another_server_steps_over_every_timeline_of_the_last_one(store, db):
    """The last one was promoted six times and had epoch 6; this one is above it, though it starts at 1."""
    enqueue(store)
    db.execute(
        "update faultline.settings set system_identifier = system_identifier + 1, timeline = 7,"
        " server_started = '-infinity'"
    )

    token = claim_one(store).token

    assert token >> 40 == 7
    assert base_and_timeline(db) == (7, 1)


def test_a_timeline_that_started_again_raises_the_base(store, db):
    enqueue(store)
    db.execute("update faultline.settings set timeline = 5, server_started = '-infinity'")

    token = claim_one(store).token

    assert token >> 40 == 5
    assert base_and_timeline(db) == (5, 1)


def test_a_timeline_that_went_on_is_recorded_and_raises_nothing_else(store, db):
    """A promotion looks so: the recorded timeline is lower than the server's own, which counts by itself."""
    enqueue(store)
    db.execute("update faultline.settings set timeline = 0, server_started = '-infinity'")

    token = claim_one(store).token

    assert token >> 40 == 0
    assert base_and_timeline(db) == (0, 1)


def test_the_epoch_is_raised_once_and_stays(store, db):
    for _ in range(3):
        enqueue(store)
    become_another_server(db)

    tokens = [claim_one(store).token for _ in range(3)]

    assert [token >> 40 for token in tokens] == [1, 1, 1]
    assert tokens == sorted(tokens)
    assert base_and_timeline(db) == (1, 1)


def test_claimers_that_wait_for_the_one_that_raises_the_epoch_do_not_raise_it_again(store, db, session):
    for _ in range(10):
        enqueue(store)
    become_another_server(db)
    first, *others = [session() for _ in range(10)]
    first.begin()
    tokens = [claim_one(first).token]
    waiting = [
        other.start_sql("select token from faultline.claim(array['default'], 1, '15 s', gen_random_uuid())")
        for other in others
    ]
    for other, answer in zip(others, waiting, strict=True):
        other.until_waiting(answer)

    first.commit()
    tokens += [answer.result(60)[0][0] for answer in waiting]

    assert base_and_timeline(db) == (1, 1)
    assert [token >> 40 for token in tokens] == [1] * 10
    assert len(set(tokens)) == 10


def test_ten_claimers_at_once_raise_the_epoch_once(store, db):
    for _ in range(10):
        enqueue(store)
    become_another_server(db)

    tokens = told_at_once([lambda: claim_one(store).token] * 10)

    assert base_and_timeline(db) == (1, 1)
    assert [token >> 40 for token in tokens] == [1] * 10
    assert len(set(tokens)) == 10


def test_a_claim_that_raised_the_epoch_and_was_rolled_back_leaves_it_to_the_next(store, db, session):
    enqueue(store)
    become_another_server(db)
    unlucky = session()
    unlucky.begin()
    lost = claim_one(unlucky)
    unlucky.rollback()

    token = claim_one(store).token

    assert token > lost.token
    assert token >> 40 == 1
    assert base_and_timeline(db) == (1, 1)
