"""What PostgreSQL says, told in our words."""

import json

import psycopg
import pytest
from psycopg_pool import PoolTimeout

from faultline import errors
from faultline.store.driver.sqlstate import named, named_errors

STATES = [
    ("LS001", errors.LeaseLost),
    ("LS002", errors.KeyConflict),
    ("LS003", errors.JobNotFound),
    ("LS004", errors.WrongState),
    ("LS005", errors.OutOfBounds),
    ("22P02", errors.BadDocument),
    ("22P05", errors.BadDocument),
    ("22021", errors.BadDocument),
    ("22003", errors.OutOfBounds),
    ("22008", errors.OutOfBounds),
    ("25006", errors.ReadOnlyServer),
    ("42501", errors.PermissionDenied),
    ("42883", errors.SchemaOutdated),
    ("42P01", errors.SchemaOutdated),
    ("3F000", errors.SchemaOutdated),
    ("08006", errors.ServerUnavailable),
    ("53100", errors.ServerUnavailable),
    ("53300", errors.ServerUnavailable),
    ("57P01", errors.ServerUnavailable),
    ("57P03", errors.ServerUnavailable),
]

BOUNDS = [
    ("a_queue_name_is_1_to_63_letters_digits_underscores_dots_dashes", errors.BadName),
    ("a_task_name_is_1_to_128_letters_digits_underscores_dots_dashes", errors.BadName),
    ("a_key_is_1_to_255_characters", errors.BadName),
    ("a_key_has_no_control_characters", errors.BadName),
    ("a_workers_name_is_1_to_200_characters", errors.BadName),
    ("a_document_is_at_most_64_deep", errors.BadDocument),
    ("a_documents_numbers_are_within_1e308_and_400_digits", errors.BadDocument),
    ("a_key_is_kept_for_0_to_10_years", errors.OutOfBounds),
    ("a_priority_is_from_minus_100_to_100", errors.OutOfBounds),
]


@pytest.fixture(scope="module")
def database(shared):
    """Faults change nothing, so one database serves all."""
    return shared


def raised(db, state, message="something", **more):
    """A fault as the server raises it."""
    using = "".join(f", {field} = {value!r}" for field, value in more.items())
    with pytest.raises(psycopg.Error) as caught:
        db.execute(f"do $$ begin raise exception '{message}' using errcode = '{state}'{using}; end $$")
    return caught.value


@pytest.mark.parametrize(("state", "error"), STATES)
def test_every_state_we_know_has_its_error(db, state, error):
    assert type(named(raised(db, state))) is error


@pytest.mark.parametrize("state", ["40001", "40P01", "57014", "55P03", "23505", "XX000"])
def test_a_state_we_have_no_better_word_for_stays_what_it_is(db, state):
    """A serialization failure means "try again", and the caller's own driver already says so."""
    fault = raised(db, state)

    assert named(fault) is fault


@pytest.mark.parametrize(("constraint", "error"), BOUNDS)
def test_a_broken_bound_is_told_as_its_sentence(db, constraint, error):
    told = named(raised(db, "23514", constraint=constraint))

    assert type(told) is error
    assert constraint.replace("_", " ") in str(told)


def test_every_bound_of_the_schema_is_named_as_a_sentence(db):
    names = db.execute(
        "select conname from pg_constraint where connamespace = 'faultline'::regnamespace and contype = 'c'"
    ).fetchall()

    assert [name for (name,) in names if len(name.split("_")) < 4 or name.endswith("_check")] == []


def test_no_name_was_cut_by_the_server(db):
    """PostgreSQL cuts a name after 63 bytes without a word."""
    cut = db.execute(
        "select conname from pg_constraint"
        " where connamespace = 'faultline'::regnamespace and octet_length(conname::text) >= 63"
    ).fetchall()

    assert cut == []


def test_a_lost_lease_carries_its_facts_and_tokens_past_2_to_the_53(db):
    facts = {
        "job_id": "7",
        "token": str(2**53 + 1),
        "current_token": str(2**53 + 3),
        "reason": "token_mismatch",
    }

    lost = named(raised(db, "LS001", detail=json.dumps(facts)))

    assert isinstance(lost, errors.LeaseLost)
    assert (lost.job_id, lost.token, lost.current_token) == (7, 2**53 + 1, 2**53 + 3)
    assert lost.reason == "token_mismatch"


def test_a_lost_lease_without_a_trace_has_no_current_token(db):
    lost = named(
        raised(db, "LS001", detail='{"job_id": "7", "token": "1", "current_token": null, "reason": "gone"}')
    )

    assert isinstance(lost, errors.LeaseLost)
    assert (lost.current_token, lost.reason) == (None, "gone")


def test_a_hint_is_part_of_what_is_told(db):
    told = named(raised(db, "LS004", "job 7 is dead", hint="Replay it."))

    assert str(told) == "job 7 is dead. Replay it."


def test_the_fault_is_kept_as_the_cause(db):
    with pytest.raises(errors.OutOfBounds) as caught, named_errors():
        db.execute("do $$ begin raise exception 'too much' using errcode = 'LS005'; end $$")

    assert isinstance(caught.value.__cause__, psycopg.Error)


def test_a_connection_that_broke_says_to_try_again(db):
    db.execute("select 1")
    db.close()

    with pytest.raises(errors.ServerUnavailable, match="try again"), named_errors():
        db.execute("select 1")


def test_a_backend_that_was_ended_says_to_try_again(db, database):
    with psycopg.connect(database, autocommit=True) as victim:
        db.execute("select pg_terminate_backend(%s)", [victim.info.backend_pid])

        with pytest.raises(errors.ServerUnavailable), named_errors():
            victim.execute("select 1")


def test_a_standby_is_told_as_one(db):
    fault = raised(db, "55000", "recovery is in progress")

    assert isinstance(named(fault), errors.ReadOnlyServer)


def test_a_pool_without_a_connection_is_told_as_such():
    with pytest.raises(errors.CannotConnect), named_errors():
        raise PoolTimeout("couldn't get a connection after 10.00 sec")


def test_a_lone_surrogate_is_told_as_a_document():
    with pytest.raises(errors.BadDocument, match="lone surrogate"), named_errors():
        "\ud800".encode()


def test_anything_else_passes_through():
    with pytest.raises(KeyError), named_errors():
        raise KeyError("not ours")
