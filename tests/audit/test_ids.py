"""Ids that a producer kept: how they are read, and what the audit says of those that are nowhere."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from faultline.audit import examine, read_ids
from faultline.audit import ids as ids_module
from faultline.errors import InputError
from faultline.store import calls
from faultline.store.pool import Store
from tests.audit import lives
from tests.support import Clock

Db = psycopg.Connection[Any]
LOST = "its enqueue was answered, and there is no trace of it"
PRUNED = "its enqueue was answered, and retention may have dropped its range of the ledger"


def test_ids_come_one_a_line_or_as_json_with_their_moment():
    lines = [
        "7",
        "",
        " 8 \n",
        '{"id": 9, "at": "2030-01-31T10:00:00+01:00", "task": "x"}',
        '{"id": 10, "at": 0.5}',
    ]

    kept = read_ids(lines, "kept.txt")

    nine = datetime(2030, 1, 31, 9, tzinfo=UTC)
    ten = datetime(1970, 1, 1, microsecond=500_000, tzinfo=UTC)
    assert kept == {7: None, 8: None, 9: nine, 10: ten}


@pytest.mark.parametrize(
    "line",
    [
        "seven", "-1", "0", "7.0", "7 8", "٧", "9" * 19 + "9", "9223372036854775808",
        '{"id": "7"}', '{"job": 7}',
        '{"id": true}', '{"id": 7', '{"id": 7, "at": "yesterday"}', '{"id": 7, "at": "2030-01-31T09:00:00"}',
        '{"id": 7, "at": 1e30}', '{"id": 7, "at": true}', '{"id": ' + "[" * 5_000 + "}", "7" * 20_000,
    ],
)  # fmt: skip
def test_a_line_that_is_no_id_is_named(line: str):
    with pytest.raises(InputError, match=r"kept\.txt, line 2: .*a line is a job id"):
        read_ids(["1", line], "kept.txt")


def test_a_file_without_ids_proves_nothing_and_is_refused():
    with pytest.raises(InputError, match="has no ids"):
        read_ids(["", "\n"], "kept.txt")


def test_the_number_of_ids_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ids_module, "IDS_MAX", 2)

    assert len(read_ids(["1", "2", "2"], "kept.txt")) == 2
    with pytest.raises(InputError, match="more than 2 ids"):
        read_ids(["1", "2", "3"], "kept.txt")


def test_jobs_in_every_place_are_found(db: Db, store: Store, clock: Clock):
    ids = [
        live(store, clock)
        for live in (lives.succeeds, lives.dies_of_failures, lives.waits_for_its_retry, lives.waits)
    ]

    assert examine(db, acknowledged=dict.fromkeys(ids)).holds


def pruned(db: Db, store: Store, clock: Clock) -> int:
    """A job that succeeded, and whose range of the ledger retention has dropped."""
    job_id = lives.succeeds(store, clock)
    db.execute("select setval('faultline.places', 5000000)")
    store.run(calls.partitions())
    clock.advance(days=30)
    assert store.run(calls.drop_partitions()) >= 1
    return job_id


def test_what_retention_explains_is_a_remark(db: Db, store: Store, clock: Clock):
    job_id = pruned(db, store, clock)
    (now,) = db.execute("select faultline.now()").fetchone()

    for moment in (None, now - timedelta(days=30)):
        report = examine(db, acknowledged={job_id: moment})
        assert report.holds, str(report)
        assert [each.told for each in report["NothingLost"].remarks] == [PRUNED]


def test_retention_explains_nothing_that_is_younger(db: Db, store: Store, clock: Clock):
    pruned(db, store, clock)
    (now,) = db.execute("select faultline.now()").fetchone()

    report = examine(db, acknowledged={17: now - timedelta(hours=1), 5_000_002: None})

    assert [(each.job_id, each.told) for each in report["NothingLost"].examples] == [
        (17, LOST),
        (5_000_002, LOST),
    ]


def test_a_database_younger_than_its_retention_has_dropped_nothing(db: Db, store: Store, clock: Clock):
    lives.succeeds(store, clock)

    report = examine(db, acknowledged=[31_536_000_000_001])  # ids leap, and the ranges between are never made

    assert [each.told for each in report["NothingLost"].examples] == [LOST]


def test_losses_are_told_before_what_retention_explains(db: Db, store: Store, clock: Clock, monkeypatch):
    pruned(db, store, clock)
    monkeypatch.setattr("faultline.audit.walk.ANSWERS_MAX", 3)

    report = examine(db, acknowledged=[*range(1, 50), 5_000_002])

    assert [each.job_id for each in report["NothingLost"].examples] == [5_000_002]


def test_where_a_queue_keeps_nothing_a_missing_job_may_have_succeeded(db: Db, store: Store, clock: Clock):
    lives.fails_once_and_leaves_nothing(store, clock)

    report = examine(db, acknowledged=[4711])

    assert report.holds, str(report)
    assert report["NothingLost"].remarks[-1].job_id == 4711
