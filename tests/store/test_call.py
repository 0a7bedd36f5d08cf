"""A call is a name and named arguments; every call fits the database function it names."""

import inspect
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

import faultline
from faultline.lease import Lease
from faultline.limit import Limit
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.driver.arrays import ArrayParam
from tests.support import new_job


@pytest.fixture(scope="module")
def database(shared):
    """Nothing here is kept, so one database serves all."""
    return shared


FUNCTIONS = Path(faultline.__file__).parent / "sql" / "functions"

LEASE = Lease(1, 1, UUID(int=1), 15.0, 0.0)

# One value for each name that an argument of a call has.
SAMPLES = {
    "new": new_job(), "batch": [new_job()], "jobs": [new_job()],
    "lease": timedelta(seconds=15), "leases": [LEASE],
    "results": ["null"], "errors": ["boom"], "delays": [timedelta(0)],
    "result": "null", "error": "boom", "delay": timedelta(0), "reason": "because",
    "savepoint": False,
    "queue": "default", "queues": ["default"], "max_jobs": 1, "bytes_max": 1, "key_name": "k",
    "except_tasks": ["t"], "tasks": ["t"], "claim": UUID(int=1), "worker": 1,
    "timeout": timedelta(hours=1), "resend": False, "tick": timedelta(seconds=1), "most": 1, "job_id": 1,
    "confirmed": False,
    "job_ids": [1], "call": calls.enqueue_many([new_job()]),
    "state": "dead", "task": "t", "before": 1, "died_after": datetime(2026, 1, 1, tzinfo=UTC),
    "what": "full", "lead_for": timedelta(seconds=10), "default_lease": timedelta(seconds=15),
    "ledger_retention": timedelta(days=7), "dead_retention": timedelta(days=90), "name": "w", "host": "h",
    "pid": 1, "jobs_max": 1, "version": "0", "gone": False, "begins": {1: 2},
    "id": "c0ffeec0ffee", "new_id": "facadefacade", "hash": bytes(32), "scopes": ["read"],
    "actor": "a", "verb": "cancel", "own": False, "prefix": "call_",
    "expires_at": datetime(2100, 1, 1, tzinfo=UTC), "overlap": timedelta(days=1),
    "acts_retention": timedelta(days=365),
    "states": ["dead"], "key": "k", "ids": [1], "max_depth": 5, "age_after": timedelta(minutes=1),
    "key_ids": ["0123456789ab"], "since": datetime(2026, 1, 1, tzinfo=UTC),
    "signature": "SIGSEGV", "alone": True, "max_crashes": 3, "named": [(1, 2)],
    "limit": Limit(total=1), "limit_name": "api", "key_path": ["k"], "from_code": False, "above": 0,
    "freed": [1],
    "app": "shop", "release": [1, 2], "specs": [], "spec": {"name": "s", "task": "t", "every": "5 minutes"},
    "schedule": "s", "after": "a", "revision": 1, "occurrences": [datetime(2026, 1, 1, tzinfo=UTC)],
    "preview": True, "ahead": timedelta(seconds=1), "firings": [], "computed": [],
    "earlier_than": datetime(2026, 1, 1, tzinfo=UTC),
    "trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}  # fmt: skip
KEYED = new_job(
    key="k", key_for=timedelta(0), priority=1, run_at=datetime(2026, 1, 1, tzinfo=UTC), delay=timedelta(0),
    lease_for=timedelta(seconds=15), timeout=timedelta(hours=1), retry="{}",
)  # fmt: skip

MADE = {
    name: make
    for name, make in vars(calls).items()
    if inspect.isfunction(make)
    and make.__module__.startswith(f"{calls.__name__}.")
    and not name.startswith("_")
}


def example(name):
    """A call with every argument given."""
    wanted = inspect.signature(MADE[name]).parameters
    given = {arg: SAMPLES[arg] for arg in wanted}
    if "lease" in given and wanted["lease"].annotation is Lease:
        given["lease"] = LEASE
    return MADE[name](**given)


EXAMPLES = {name: example(name) for name in MADE} | {
    "enqueue, with everything": calls.enqueue(KEYED),
    "enqueue_many, with everything": calls.enqueue_many([KEYED]),
    "enqueue_each, with everything": calls.enqueue_each([KEYED, new_job(trace=SAMPLES["trace"])]),
}


def test_a_call_renders_to_one_line_with_named_arguments():
    call = Call("complete", {"job_id": 7, "token": 3}, read=len)

    assert call.sql == "select * from faultline.complete(job_id => %(job_id)s, token => %(token)s)"
    assert call.args == {"job_id": 7, "token": 3}


def test_an_array_says_its_type_so_that_the_server_need_not_guess_it():
    call = Call("reap", {"ids": ArrayParam([], "bigint")}, read=len)

    assert call.sql == "select * from faultline.reap(ids => %(ids)b::bigint[])"
    assert call.args == {"ids": ArrayParam([], "bigint")}


def test_a_call_without_arguments_has_none():
    assert Call("floors", {}, read=len).sql == "select * from faultline.floors()"


def test_a_call_is_a_value():
    assert calls.get(7) == calls.get(7)
    with pytest.raises(AttributeError):
        calls.get(7).name = "other"  # type: ignore[misc]


def test_a_call_never_shows_a_claim():
    """Calls end up in logs and tracebacks; the claim id is a capability."""
    claim = UUID("0f0f0f0f-0f0f-4f0f-8f0f-0f0f0f0f0f0f")
    lease = LEASE._replace(claim=claim)

    for call in (calls.complete(lease, "null"), calls.heartbeat([lease], timedelta(seconds=15))):
        assert str(claim) not in repr(call)
        assert "UUID(" not in repr(call)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_call_fits_the_function_it_names(db, name):
    call = EXAMPLES[name]

    takes = db.execute(
        "select proargnames[1:pronargs] from pg_proc"
        " where pronamespace = 'faultline'::regnamespace and proname = %s",
        [call.name],
    ).fetchall()

    assert len(takes) == 1, "one function of that name"
    assert set(call.args) <= set(takes[0][0] or [])


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_call_can_be_prepared(db, name):
    """The types that the driver sends are types that the function takes."""
    call = EXAMPLES[name]

    refusal = None
    with db.transaction(force_rollback=True):
        try:
            db.execute(call.sql, call.args, prepare=True)
        except psycopg.Error as fault:
            refusal = fault.sqlstate

    assert refusal is None or refusal.startswith("LS"), "the job is not there, but the call was understood"


def test_every_verb_of_the_database_has_its_call(db):
    verbs = db.execute(
        "select proname from pg_proc where pronamespace = 'faultline'::regnamespace and prosecdef"
    ).fetchall()

    uncalled = {name for (name,) in verbs} - {call.name for call in EXAMPLES.values()}

    assert uncalled == {"schema_version", "server_state"}, "asked by the first words with a server"


@pytest.mark.parametrize("name", MADE)
def test_a_call_stands_in_the_file_of_its_functions_folder(name):
    (file,) = FUNCTIONS.glob(f"*/{EXAMPLES[name].name}.sql")
    folder = "maintenance" if file.parent.name == "queues" else file.parent.name

    assert MADE[name].__module__ == f"{calls.__name__}.{folder}"


def test_what_is_not_asked_for_is_left_to_the_function():
    assert set(calls.enqueue(new_job()).args) == {"task", "queue", "max_attempts", "args"}


def test_a_duration_of_nothing_is_sent_and_not_taken_for_none():
    asked = calls.enqueue(new_job(key="k", key_for=timedelta(0), lease_for=timedelta(0))).args

    assert (asked["key_for"], asked["lease_for"]) == (timedelta(0), timedelta(0))
