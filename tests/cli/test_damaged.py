"""One damaged row is shown as such, and fails no list that it stands in."""

from datetime import timedelta

import psycopg
import pytest

from faultline.store import calls
from tests.support import claim_one, enqueue

LOOSE = """
do $$
declare
  bound record;
begin
  for bound in
    select format('alter domain %s drop constraint %I', contypid::regtype, conname) as drop
    from pg_constraint where connamespace = 'faultline'::regnamespace and contypid <> 0 and contype = 'c'
  loop
    execute bound.drop;
  end loop;
end;
$$;
alter table faultline.active alter column task drop not null;
alter table faultline.ledger drop constraint an_end_stands_in_slot_0_and_anything_else_in_its_tokens
"""
DEEP = "repeat('[', 999) || repeat(']', 999)"

# What was damaged, and what is told of it.
WOUNDS = {
    "args that are no JSON": ("active", "args = '{\"order\": 7'", "its args are no JSON document"),
    "args too deep": ("active", f"args = {DEEP}", "its args are no JSON document"),
    "a number of 5,000 digits": ("active", "args = '{\"n\": 1e5000}'", "its args are no JSON document"),
    "no task": ("active", "task = null", "it has no task"),
    "made at no moment": ("active", "created_at = 'infinity'", "a moment of it is none"),
    "made before all moments": ("active", "created_at = '-infinity'", "a moment of it is none"),
    "due in the year 20000": ("later", "run_at = '20000-01-01'", "a moment of it is none"),
    "dead args": ("dead", "args = 'nonsense'", "its args are no JSON document"),
    "died at no moment": ("dead", "died_at = 'infinity'", "a moment of it is none"),
    "a result that is none": ("ledger", "result = '{'", "its result is no JSON document"),
    "an end that is none": ("ledger", "outcome = 'failed'", "it ended as 'failed'"),
}  # fmt: skip


@pytest.fixture(params=WOUNDS)
def damaged(request, store, database):
    """A job with a damaged row between two that are well; its id, and what is to be told of it."""
    table, change, told = WOUNDS[request.param]
    enqueue(store)
    job = enqueue(store, delay=timedelta(days=1) if table == "later" else None, queue="hurt")
    if table in ("dead", "ledger"):
        lease = claim_one(store, queues=("hurt",))
        store.run(calls.bury(lease, "no") if table == "dead" else calls.complete(lease, "7"))
    enqueue(store)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(LOOSE)
        where = "job_id" if table == "ledger" else "id"
        conn.execute(f"update faultline.{table} set {change} where {where} = %s", [job])
    return job, told


def test_jobs_list_shows_a_damaged_row_among_the_others(on, ask, damaged):
    job, told = damaged

    listed = ask("jobs", "list")

    assert [known["id"] for known in listed] == [job + 1, job, job - 1]
    assert [known["damage"] for known in listed] == [None, told, None]
    assert f"damaged: {told}"[:20] in on("jobs", "list").stdout


def test_jobs_show_says_what_is_wrong_with_it(on, ask, damaged):
    job, told = damaged

    assert ask("jobs", "show", str(job))["damage"] == told
    assert told in on("jobs", "show", str(job)).stdout


def test_the_others_are_shown_on_request(store, damaged):
    job, told = damaged

    found = {known.id: known.damage for known in store.run(calls.find_jobs())}

    assert found == {job + 1: None, job: told, job - 1: None}
    assert store.run(calls.get(job)).damage == told


def test_a_large_document_that_is_none_is_told_by_show_and_parsed_by_no_list(store, database):
    """To parse a mebibyte takes a third of a second, and a page holds 500 jobs."""
    enqueue(store)
    job = enqueue(store, args='{"a":"' + "x" * 5_000 + '"}')
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(LOOSE)
        conn.execute("update faultline.active set args = left(args, 4000) where id = %s", [job])

    assert {known.id: known.damage for known in store.run(calls.find_jobs())} == {job: None, job - 1: None}
    assert store.run(calls.get(job)).damage == "its args are no JSON document"
    assert store.run(calls.get(job - 1)).damage is None
