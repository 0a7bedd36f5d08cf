"""`audit`: a verdict table, JSON and an exit code; it says what it could not look at."""

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from faultline.audit import INVARIANTS
from tests.audit import lives
from tests.support import enqueue

Db = psycopg.Connection[Any]


def test_a_sound_database_holds_and_exits_with_0(on, store, clock):
    lives.crashes_and_succeeds(store, clock)

    told = on("audit")

    assert told.exit_code == 0, told.output
    assert told.stderr == ""
    lines = told.stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:10]] == [["holds", name] for name in INVARIANTS]
    assert lines[-1].startswith("everything holds, as of ")


def test_a_violation_is_named_with_its_job_and_exits_with_1(on, store, clock, db: Db):
    job_id = lives.waits_for_its_retry(store, clock)
    db.execute("delete from faultline.later")

    told = on("audit")

    assert told.exit_code == 1
    assert "VIOLATED  NothingLost" in told.stdout
    assert f"{job_id}  its last lease, token 1, ended failed, and it stands nowhere" in told.stdout
    assert told.stdout.splitlines()[-1].startswith("NothingLost violated, as of ")


def test_json_has_every_verdict_with_its_counterexamples(on, store, clock, db: Db):
    job_id = lives.waits_for_its_retry(store, clock)
    db.execute("delete from faultline.later")

    plain, long = on("audit", "--json"), on("--output", "json", "audit")

    document = json.loads(plain.stdout)
    assert plain.exit_code == long.exit_code == 1
    assert json.loads(long.stdout).keys() == document.keys()
    assert (document["holds"], document["complete"]) == (False, True)
    (lost,) = [verdict for verdict in document["verdicts"] if not verdict["holds"]]
    assert (lost["name"], lost["found"], lost["looked_at"]) == ("NothingLost", 1, 1)
    assert lost["examples"][0]["job_id"] == job_id
    assert lost["examples"][0]["check"] == "an_open_job_is_somewhere"


def test_a_remark_is_told_and_breaks_nothing(on, store, clock):
    job_id = lives.waits_for_its_retry(store, clock)
    clock.advance(hours=1)

    told = on("audit")

    assert told.exit_code == 0
    assert f"{job_id}  it was due 2700" in told.stdout
    assert on("audit", "--bound", "2h").stdout.count("it was due") == 0


def test_what_could_not_be_looked_at_in_time_exits_with_3(on, store, clock, database):
    lives.succeeds(store, clock)
    with psycopg.connect(database) as other:
        other.execute("lock table faultline.dead")

        told = on("audit", "--limit-time", "200ms")

    assert told.exit_code == 3
    assert "so far" in told.stdout
    assert "not everything was looked at: the time ran out" in told.stdout


def test_a_database_that_cannot_be_looked_at_exits_with_3(run, empty_database):
    unreachable = run("audit", "--dsn", "host=127.0.0.1 port=1 password=topsecret")
    empty = run("audit", "--dsn", empty_database)

    assert (unreachable.exit_code, empty.exit_code) == (3, 3)
    assert "could not look: cannot connect" in unreachable.stderr
    assert "topsecret" not in unreachable.output
    assert "run `faultline migrate`" in empty.stderr


@pytest.fixture
def auditor(db: Db, database: str) -> Iterator[str]:
    """The name of a role that may look at nothing yet."""
    name = f"auditor_{psycopg.conninfo.conninfo_to_dict(database)['dbname']}"
    db.execute(f"create role {name} login".encode())
    yield name
    db.execute(f"drop owned by {name}".encode())
    db.execute(f"drop role {name}".encode())


def test_a_role_that_may_only_read_is_enough_and_less_is_told(run, store, db: Db, database, auditor):
    enqueue(store)
    dsn = psycopg.conninfo.make_conninfo(database, user=auditor)
    outside = run("audit", "--dsn", dsn)
    db.execute(f"grant usage on schema faultline to {auditor}".encode())
    db.execute(f"grant execute on function faultline.now(), faultline.schema_version() to {auditor}".encode())
    blind = run("audit", "--dsn", dsn)
    db.execute(f"grant select on all tables in schema faultline to {auditor}".encode())
    db.execute(f"alter role {auditor} set default_transaction_read_only = on".encode())
    seeing = run("audit", "--dsn", dsn)

    assert (outside.exit_code, blind.exit_code) == (3, 3)
    assert "may not use the schema faultline" in outside.stderr
    assert "permission denied" in blind.stderr
    assert seeing.exit_code == 0, seeing.output


@pytest.mark.parametrize("words", [("--limit-time", "soon"), ("--effects", "nowhere"), ("--bound", "-1s")])
def test_what_was_typed_wrongly_exits_with_2(on, words):
    told = on("audit", *words)

    assert told.exit_code == 2, told.output


def test_without_a_database_to_look_at_it_exits_with_2(run):
    told = run("audit")

    assert told.exit_code == 2, told.output


def test_a_table_of_effects_is_held_against_the_ledger(on, store, clock, db: Db):
    job_id = lives.succeeds(store, clock)
    db.execute("create table paid (job_id bigint, token bigint)")
    db.execute("insert into paid values (%s, 1)", [job_id])

    assert on("audit", "--effects", "paid").exit_code == 0

    db.execute("insert into paid values (%s, 1)", [job_id])
    told = on("audit", "--effects", "public.paid")

    assert told.exit_code == 1
    assert "its effect is there 2 times, by tokens 1, 1" in told.stdout


def test_acknowledged_ids_that_are_nowhere_are_named(on, store, clock, tmp_path):
    job_id = lives.succeeds(store, clock)
    kept = tmp_path / "kept.txt"
    kept.write_text(f"{job_id}\n")

    assert on("audit", "--ids", kept).exit_code == 0

    kept.write_text(f'{{"id": {job_id}}}\n{{"id": 4711, "at": "2030-01-31T09:00:00Z", "n": 3}}\n')
    told, piped = on("audit", "--ids", kept), on("audit", "--ids", "-", input="4711\n")

    assert told.exit_code == piped.exit_code == 1
    assert "NothingLost  4711  its enqueue was answered" in told.stdout
    assert "(1 against it)" in told.stdout


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"1\nabc\n", "line 2: 'abc': it is no job id"),
        (b"", "has no ids"),
        (b"\xff\xfe1", "cannot be read"),
        (None, "cannot be read: .*No such file"),
    ],
)
def test_a_file_of_ids_that_cannot_be_read_is_named_and_exits_with_2(on, tmp_path, text, why):
    kept = tmp_path / "kept.txt"
    if text is not None:
        kept.write_bytes(text)

    told = on("audit", "--ids", kept)

    assert told.exit_code == 2
    assert re.search(why, told.stderr.replace("\n", " ")), told.stderr
    assert on("audit", "--ids", tmp_path).exit_code == 2


def test_the_help_shows_each_default_as_it_is_typed(run):
    told = run("audit", "--help", env={"COLUMNS": "200"}).stdout

    assert "[default: 60s]" in told
    assert "[default: 2m]" in told
