"""What a server says of itself: by this a client with several hosts chooses the newest."""

import psycopg
import pytest

from tests.support import claim_one, enqueue
from tests.support_failover import a_pair

STATE = "select read_only, cluster, epoch, token from faultline.server_state()"


def test_tokens_are_of_the_epoch_that_was_told_before(store, db):
    read_only, cluster, epoch, _ = db.execute(STATE).fetchone()
    enqueue(store)

    token = claim_one(store).token

    assert token >> 40 == epoch - 1
    assert not read_only
    assert (cluster,) == db.execute("select system_identifier from pg_control_system()").fetchone()


@pytest.mark.parametrize(
    "change", ["system_identifier = 7", "timeline = 40", "timeline = 40, system_identifier = 7"]
)
def test_an_upgrade_or_a_restore_counts_before_the_first_claim_has_noted_it(store, db, change):
    db.execute(f"update faultline.settings set {change}, server_started = '-infinity'")
    epoch = db.execute(STATE).fetchone()[2]
    enqueue(store)

    assert claim_one(store).token >> 40 == epoch - 1


def test_it_writes_nothing(db):
    db.execute("update faultline.settings set timeline = 40")
    before = db.execute("select * from faultline.settings").fetchone()

    db.execute("set default_transaction_read_only = on")

    assert db.execute(STATE).fetchone()[0]
    assert db.execute("select * from faultline.settings").fetchone() == before


def test_a_standby_answers_and_is_one_epoch_on_once_it_was_promoted():
    with a_pair() as pair:
        with psycopg.connect(pair.new, autocommit=True) as standby:
            first = standby.execute(STATE).fetchone()
        pair.standby.promote()
        with psycopg.connect(pair.new, autocommit=True) as standby:
            second = standby.execute(STATE).fetchone()

    assert (first[0], second[0]) == (True, False)
    assert first[1] == second[1]
    assert second[2] == first[2] + 1
