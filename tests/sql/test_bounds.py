"""Every bound at its edge and just past it: by the Python client, by plain SQL, and by a bare INSERT."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import psycopg
import pytest

from faultline.errors import BadDocument, BadName, OutOfBounds
from faultline.store import calls
from tests.support import LEASE, claim_one, enqueue, new_job, row_counts

MICRO = timedelta(microseconds=1)
YEARS_10 = timedelta(days=3600)
MIB = 1_048_576


@pytest.fixture(scope="module")
def database(shared):
    """What is refused leaves nothing behind, so one database serves all."""
    return shared


def refused(store, database, error, **options):
    """The error that refused the job; no row came or went."""
    before = row_counts(database)
    with pytest.raises(error) as caught:
        enqueue(store, **options)
    assert row_counts(database) == before
    return str(caught.value)


ALLOWED = [
    {"queue": "q"},
    {"queue": "Q" * 63},
    {"queue": "_a.b-c"},
    {"queue": "0"},
    {"task": "t"},
    {"task": "t" * 128},
    {"task": "billing.charge-card_2"},
    {"key": "k"},
    {"key": "k" * 255},
    {"key": "schlüssel 🗝 ' ; --"},
    {"max_attempts": 1},
    {"max_attempts": 10_000},
    {"priority": -100},
    {"priority": 100},
    {"delay": timedelta(0)},
    {"delay": YEARS_10},
    {"run_at": datetime(2000, 1, 1, tzinfo=UTC)},
    {"run_at": datetime(2199, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)},
    {"lease_for": timedelta(milliseconds=500)},
    {"lease_for": timedelta(days=1)},
    {"timeout": timedelta(milliseconds=100)},
    {"timeout": timedelta(days=30)},
    {"key": "k", "key_for": timedelta(0)},
    {"key": "k", "key_for": YEARS_10},
]


@pytest.mark.parametrize("options", ALLOWED, ids=str)
def test_at_the_edge_is_allowed(store, options):
    assert enqueue(store, **options) > 0


NAMES = [
    "",
    " ",
    "a b",
    ".a",
    "-a",
    "a:b",
    "a/b",
    "a\n",
    "a'; drop table jobs;--",
    "%",
    "*",
    "é",
    "ſ",
    "🦀",
    "\u202ea",
    "a\u200b",
]


@pytest.mark.parametrize("name", [*NAMES, "q" * 64, "q" * 10_000], ids=ascii)
def test_a_queue_name_past_the_rules_is_refused(store, database, name):
    said = refused(store, database, BadName, queue=name)

    assert "a queue name is 1 to 63 letters" in said


@pytest.mark.parametrize("name", [*NAMES, "t" * 129, "os.system()"], ids=ascii)
def test_a_task_name_past_the_rules_is_refused(store, database, name):
    said = refused(store, database, BadName, task=name)

    assert "a task name is 1 to 128 letters" in said


OUT_OF_BOUNDS = [
    ({"max_attempts": 0}, "max attempts is from 1 to 10000"),
    ({"max_attempts": -1}, "max attempts is from 1 to 10000"),
    ({"max_attempts": 10_001}, "max attempts is from 1 to 10000"),
    ({"max_attempts": 2**31}, "max attempts is from 1 to 10000"),
    ({"max_attempts": 2**63 - 1}, "max attempts is from 1 to 10000"),
    ({"priority": -101}, "a priority is from minus 100 to 100"),
    ({"priority": 101}, "a priority is from minus 100 to 100"),
    ({"priority": 2**31}, "a priority is from minus 100 to 100"),
    ({"delay": -MICRO}, "a delay is from 0 to 10 years"),
    ({"delay": YEARS_10 + MICRO}, "a delay is from 0 to 10 years"),
    ({"run_at": datetime(1999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)}, "between the years 2000 and 2200"),
    ({"run_at": datetime(2200, 1, 1, tzinfo=UTC)}, "between the years 2000 and 2200"),
    ({"run_at": datetime(9999, 1, 1, tzinfo=UTC)}, "between the years 2000 and 2200"),
    ({"run_at": datetime(1, 1, 2, tzinfo=UTC)}, "between the years 2000 and 2200"),
    ({"lease_for": timedelta(0)}, "a lease lasts from half a second to one day"),
    ({"lease_for": timedelta(milliseconds=500) - MICRO}, "a lease lasts from half a second to one day"),
    ({"lease_for": timedelta(days=1) + MICRO}, "a lease lasts from half a second to one day"),
    ({"timeout": timedelta(0)}, "a timeout is from 100 milliseconds to 30 days"),
    ({"timeout": timedelta(milliseconds=100) - MICRO}, "a timeout is from 100 milliseconds to 30 days"),
    ({"timeout": timedelta(days=30) + MICRO}, "a timeout is from 100 milliseconds to 30 days"),
]


@pytest.mark.parametrize(("options", "sentence"), OUT_OF_BOUNDS, ids=str)
def test_just_past_the_edge_is_refused(store, database, options, sentence):
    assert sentence in refused(store, database, OutOfBounds, **options)


@pytest.mark.parametrize("options", [{"max_attempts": 2**63}, {"priority": -(2**64)}], ids=str)
def test_a_number_past_64_bits_is_told_as_what_it_is(store, database, options):
    assert next(iter(options)) in refused(store, database, OutOfBounds, **options)


@pytest.mark.parametrize("job_id", [2**63, -(2**63) - 1, 10**30])
def test_an_id_past_64_bits_is_told_as_what_it_is(store, job_id):
    with pytest.raises(OutOfBounds, match="job_id"):
        store.run(calls.get(job_id))


DOCUMENTS = [
    "null",
    "1",
    '"x"',
    "[]",
    '{"text": "' + "x" * 400 + '"}',
    '{"digits": "' + "1" * 1000 + '"}',
    "[1e308, -1e308]",
    "[1e-400]",
    "[" + "9" * 308 + "]",
    "[" * 64 + "]" * 64,
    "[" * 63 + "1" + "]" * 63,
    '{"a":' * 63 + "1" + "}" * 63,
    '"' + "x" * (MIB - 2) + '"',
    "[9007199254740993]",
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda text: f"{text[:12]}... {len(text)}")
def test_a_document_within_its_bounds_comes_back_as_it_went(store, db, document):
    job_id = enqueue(store, args=document, queue="documents")
    lease = claim_one(store, queues=("documents",))

    store.run(calls.complete(lease, document))

    same = db.execute(
        "select args = %s::jsonb and result = args from faultline.jobs where id = %s", [document, job_id]
    )
    assert same.fetchone()[0]


BAD_DOCUMENTS = [
    ('"' + "x" * (MIB - 1) + '"', "at most one mebibyte"),
    ("[" + ",".join(["1e131000"] * 200) + "]", "within 1e308"),
    ("[" * 65 + "]" * 65, "at most 64 deep"),
    ("[" * 64 + "1" + "]" * 64, "at most 64 deep"),
    ("[" * 64 + "null" + "]" * 64, "at most 64 deep"),
    ('{"a":' * 64 + "1" + "}" * 64, "at most 64 deep"),
    ("[" * 6000 + "]" * 6000, "at most 64 deep"),
    ("[1e309]", "within 1e308"),
    ("[-1e309]", "within 1e308"),
    ('{"n": ' + "9" * 309 + "}", "within 1e308"),
    ('"\\u0000"', ""),
    ('{"a\\u0000": 1}', ""),
    ('"\\ud800"', ""),
    ("NaN", ""),
    ("[Infinity]", ""),
    ("{", ""),
    ("", ""),
    ("1e999999999", ""),
]


@pytest.mark.parametrize(
    ("document", "sentence"), BAD_DOCUMENTS, ids=lambda text: f"{text[:12]}... {len(text)}"
)
def test_a_document_past_its_bounds_is_refused(store, database, document, sentence):
    assert sentence in refused(store, database, (BadDocument, OutOfBounds), args=document)


@pytest.mark.parametrize(
    ("document", "sentence"), BAD_DOCUMENTS, ids=lambda text: f"{text[:12]}... {len(text)}"
)
def test_one_document_past_its_bounds_has_all_of_its_bulk_refused(store, database, document, sentence):
    before = row_counts(database)

    with pytest.raises((BadDocument, OutOfBounds)) as caught:
        store.run(calls.enqueue_many([new_job(), new_job(args=document)]))
    assert sentence in str(caught.value)
    assert row_counts(database) == before


def test_a_document_is_kept_as_it_was_written(store):
    written = '{"b" : 1e3,  "a":"\\u00e9"}'
    store.run(calls.enqueue_many([new_job(args=written, queue="written")]))

    (job,) = store.run(calls.claim(["written"], 1, lease=LEASE, claim=uuid4()))
    assert job.args == written


def test_the_text_of_a_document_is_bounded_by_its_own_length(store, database):
    """Blanks are not printed again, so that the document would be small."""
    before = row_counts(database)

    with pytest.raises((BadDocument, OutOfBounds), match="at most one mebibyte"):
        store.run(calls.enqueue_many([new_job(args="[" + " " * MIB + "]")]))
    assert row_counts(database) == before


@pytest.mark.parametrize("text", ["a\x00b", "\x00"])
@pytest.mark.parametrize("field", ["args", "task", "queue", "key"])
def test_a_nul_is_refused_wherever_it_stands(store, database, field, text):
    refused(store, database, (BadDocument, BadName), **{field: text})


@pytest.mark.parametrize("field", ["args", "task", "queue", "key"])
def test_a_lone_surrogate_is_refused_wherever_it_stands(store, database, field):
    refused(store, database, (BadDocument, BadName), **{field: '"\ud800"'})


def test_a_deep_document_is_found_also_when_a_table_compressed_it(db):
    """pg_column_size tells the compressed size, and nested brackets compress well."""
    db.execute("create table kept (document jsonb)")
    db.execute("insert into kept values (%s)", ["[" * 70 + '"' + "a" * 3000 + '"' + "]" * 70])

    with pytest.raises(psycopg.errors.CheckViolation, match="at_most_64_deep"):
        db.execute("select document::faultline.document from kept")


PLAIN_SQL = [
    "faultline.enqueue('t', queue => 'a b')",
    "faultline.enqueue('t t')",
    "faultline.enqueue('t', '\"\\u0000\"')",
    "faultline.enqueue('t', priority => 101)",
    "faultline.enqueue('t', max_attempts => 0)",
    "faultline.enqueue('t', max_attempts => 2147483648)",
    "faultline.enqueue('t', delay => '-1 second')",
    "faultline.enqueue('t', delay => '11 years')",
    "faultline.enqueue('t', run_at => 'infinity')",
    "faultline.enqueue('t', run_at => '-infinity')",
    "faultline.enqueue('t', run_at => '44 BC-03-15')",
    "faultline.enqueue('t', run_at => '9999-01-01')",
    "faultline.enqueue('t', lease_for => '1 ms')",
    "faultline.enqueue('t', lease_for => '10 years')",
    "faultline.enqueue('t', timeout => '0')",
    "faultline.enqueue('t', key => '')",
    "faultline.enqueue('t', key => repeat('k', 256))",
    "faultline.enqueue('t', key => E'a\\tb')",
    "faultline.enqueue('t', key => 'k', key_for => '-1 day')",
    "faultline.enqueue('t', repeat('[', 65)::text || repeat(']', 65))",
    "faultline.enqueue('t', null)",
    "faultline.enqueue(null)",
    "faultline.enqueue_many('t', array['{}', null])",
    "faultline.enqueue_many('t', array['{}', '{'])",
    "faultline.claim(array['default'], 1, '15 s', null)",
    "faultline.claim(array['default'], 1, '15 s', 'not-a-uuid')",
    "faultline.snooze(1, 1, gen_random_uuid(), '-1 s')",
    "faultline.configure(default_lease => '1 ms')",
    "faultline.configure(ledger_retention => '1 s')",
    "faultline.set_retention('default', 'everything')",
]


@pytest.mark.parametrize("call", PLAIN_SQL)
def test_plain_sql_meets_the_same_bounds(store, db, database, call):
    enqueue(store)
    before = row_counts(database)

    with pytest.raises(psycopg.Error):
        db.execute(f"select * from {call}")

    assert row_counts(database) == before


BARE = [
    ("task", "'a b'"),
    ("args", "'\"\\u0000\"'"),
    ("args", "to_jsonb(repeat('x', 1048576))"),
    ("args", "'[1e309]'"),
    ("key", "''"),
    ("lease_for", "'1 ms'"),
    ("timeout", "'31 days'"),
    ("max_attempts", "0"),
]


@pytest.mark.parametrize(("column", "value"), BARE)
@pytest.mark.parametrize("table", ["active", "later"])
def test_a_bare_update_meets_the_same_bounds(store, db, table, column, value):
    enqueue(store, delay=timedelta(hours=1) if table == "later" else None)

    with pytest.raises(psycopg.Error):
        db.execute(f"update faultline.{table} set {column} = {value}")


def test_a_huge_exponent_costs_no_memory(store, database, db):
    """1,801 bytes in were 26,200,600 bytes of text out."""
    refused(store, database, (BadDocument, OutOfBounds), args="[" + ",".join(["1e131000"] * 1000) + "]")

    assert db.execute("select 1").fetchone()[0] == 1
