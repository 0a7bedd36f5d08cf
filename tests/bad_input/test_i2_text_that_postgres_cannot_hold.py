"""I2: NUL, lone surrogates, NaN and infinities are refused by name at every entry point."""

import math

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from tests.bad_input.entry_points import words
from tests.support import NOW, claim_one, enqueue, new_job

REFUSED_BY_POSTGRES = {
    "an escaped NUL": ('{"a": "\\u0000"}', "cannot be converted to text"),
    "an escaped NUL in a name": ('{"\\u0000": 1}', "cannot be converted to text"),
    "a lone high surrogate": ('{"a": "\\ud800"}', "surrogate"),
    "a lone low surrogate": ('{"a": "\\udc00"}', "surrogate"),
    "NaN": ('{"a": NaN}', '"NaN" is invalid'),
    "Infinity": ('{"a": Infinity}', '"Infinity" is invalid'),
    "half a document": ('{"a": ', "ended unexpectedly"),
    "no document": ("", "ended unexpectedly"),
}


@pytest.mark.parametrize("case", REFUSED_BY_POSTGRES)
def test_i2_json_that_postgres_refuses_is_told_with_its_reason(entries, nothing_changes, case):
    text, reason = REFUSED_BY_POSTGRES[case]

    with nothing_changes():
        with pytest.raises(errors.BadDocument) as by_store:
            entries.by_store(args=text)
        with pytest.raises(psycopg.DataError) as by_sql:
            entries.by_sql(args=text)

    assert reason in str(by_store.value)
    assert "remove or escape it" in str(by_store.value)
    assert "\n" not in str(by_store.value)
    assert reason in words(by_sql.value)


@pytest.mark.parametrize("field", ["task", "queue", "key", "args"])
@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"], ids=ascii)
def test_i2_a_character_that_cannot_be_sent_is_refused_by_the_store(entries, nothing_changes, field, text):
    with nothing_changes(), pytest.raises(errors.InputError, match="remove") as refusal:
        entries.by_store(**{field: text})

    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("text", ['{"a":"\0"}', '{"a":"\ud800"}'], ids=ascii)
def test_i2_one_bad_job_refuses_its_batch(store, nothing_changes, text):
    with nothing_changes(), pytest.raises(errors.BadDocument):
        store.run(calls.enqueue_many([new_job(), new_job(args=text), new_job()]))


@pytest.mark.parametrize(
    ("value", "place", "advice"),
    [
        ({"deep": ["a\0b"]}, "value.deep[0]", "Remove it"),
        ({"a\0b": 1}, "a key in value", "Remove it"),
        ("a\ud800b", "value", "Decode it"),
        ({"x": math.nan}, "value.x", "Use None"),
        ([1.0, -math.inf], "value[1]", "Use None"),
    ],
    ids=["NUL", "NUL in a name", "surrogate", "NaN", "infinity"],
)
def test_i2_the_python_door_names_the_field_and_the_remedy(entries, nothing_changes, value, place, advice):
    with nothing_changes(), pytest.raises(errors.BadDocument) as refusal:
        entries.by_python(value)

    assert "args of task test_task" in str(refusal.value)
    assert place in str(refusal.value)
    assert advice in str(refusal.value)


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"], ids=ascii)
@pytest.mark.parametrize("field", ["task", "queue", "key"])
def test_i2_names_are_refused_by_the_python_door(entries, nothing_changes, field, text):
    with nothing_changes(), pytest.raises(errors.BadName) as refusal:
        entries.by_python(**{field: text})

    assert str(refusal.value).isprintable()


@pytest.mark.parametrize("text", ['"\\u0000"', '"\0"', "NaN", '"\ud800"'], ids=ascii)
def test_i2_a_result_that_cannot_be_kept_leaves_the_lease_as_it_is(store, nothing_changes, text):
    """The worker can still say how the attempt ended: nothing of it was settled."""
    enqueue(store)
    lease = claim_one(store)

    with nothing_changes():
        with pytest.raises(errors.BadDocument):
            store.run(calls.complete(lease, text))
        with pytest.raises(errors.BadDocument):
            store.run(calls.complete_many([lease], [text]))

    assert store.run(calls.outcome(lease)) == "running"


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b"], ids=ascii)
def test_i2_a_reason_or_an_error_that_cannot_be_kept_leaves_the_lease_as_it_is(store, nothing_changes, text):
    enqueue(store)
    lease = claim_one(store)

    with nothing_changes():
        for call in (calls.fail(lease, text, NOW), calls.bury(lease, text), calls.cancel(lease.job_id, text)):
            with pytest.raises(errors.InputError):
                store.run(call)
