"""I5: duplicate names, 1 against 1.0, numbers past 2^53: what is kept, and what is the same request."""

import pytest

from faultline import errors
from faultline.store import calls

SAME = {
    "other spaces": ('{"a": 1, "b": 2}', '{ "a":1,"b":2 }'),
    "another order": ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}'),
    "a name given twice": ('{"a": 2}', '{"a": 1, "a": 2}'),
    "an escaped letter": ('{"a": "ü"}', '{"a": "\\u00fc"}'),
}
OTHER = {
    "1 and 1.0": ('{"a": 1}', '{"a": 1.0}'),
    "1 and '1'": ('{"a": 1}', '{"a": "1"}'),
    "null and nothing": ('{"a": null}', "{}"),
    "neighbours past 2^53": ('{"a": 9007199254740992}', '{"a": 9007199254740993}'),
}


@pytest.mark.parametrize("case", SAME)
def test_i5_documents_that_mean_the_same_are_the_same_request(entries, case):
    first, second = SAME[case]

    assert entries.by_store(key="order-7", args=first) == entries.by_store(key="order-7", args=second)


@pytest.mark.parametrize("case", OTHER)
def test_i5_documents_that_differ_in_a_value_are_another_request(entries, nothing_changes, case):
    first, second = OTHER[case]
    job = entries.by_store(key="order-7", args=first)

    with (
        nothing_changes(),
        pytest.raises(errors.KeyConflict, match=f"already names job {job}.*use another key"),
    ):
        entries.by_store(key="order-7", args=second)


def test_i5_of_a_name_given_twice_the_last_value_is_kept(entries, store):
    job = entries.by_store(args='{"a": 1, "a": 2}')

    assert store.run(calls.get(job)).args == {"a": 2}


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**63, 10**300])
def test_i5_a_whole_number_keeps_all_its_digits(entries, store, number):
    jobs = [entries.by_store(args=f'{{"value": {number}}}'), entries.by_python(number)]

    assert [store.run(calls.get(job)).args for job in jobs] == [{"value": number}] * 2


def test_i5_the_same_request_has_the_same_json_whatever_made_its_values(entries):
    """A set has another order in every process; the Python client sorts it first."""
    first = entries.by_python({"b", "a", "c"}, key="order-7")

    assert entries.by_python({"c", "b", "a"}, key="order-7") == first
