"""I4: the limit is one mebibyte, to the byte, at every entry point; a document far beyond it is refused."""

import resource
import sys

import psycopg
import pytest

from faultline import errors
from faultline.store import calls
from tests.bad_input.entry_points import words
from tests.support import claim_one, enqueue

MIB = 1_048_576
AROUND = len('{"a": ""}')


def document(size: int) -> str:
    """A document of this many bytes, as PostgreSQL prints it."""
    return '{"a": "' + "x" * (size - AROUND) + '"}'


@pytest.mark.parametrize("size", [MIB - 1, MIB])
def test_i4_a_mebibyte_is_let_in(entries, db, size):
    jobs = [entries.by_store(args=document(size)), entries.by_sql(args=document(size), task="other")]
    jobs += [entries.by_python("x" * (size - len('{"value": ""}')))]

    sizes = db.execute(
        "select octet_length(args::text) from faultline.jobs where id = any(%s)", [jobs]
    ).fetchall()
    assert sizes == [(size,)] * 3


def test_i4_one_byte_more_is_refused_at_every_door(entries, nothing_changes):
    with nothing_changes():
        told = entries.refusals(args=document(MIB + 1))

    assert type(told["store"]) is errors.BadDocument
    assert "at most one mebibyte" in str(told["store"])
    assert type(told["sql"]) is psycopg.errors.CheckViolation
    assert "a_document_is_at_most_one_mebibyte" in words(told["sql"])
    assert type(told["python"]) is errors.BadDocument
    assert "1,048,576 are allowed. Store it elsewhere" in str(told["python"])


def test_i4_bytes_count_not_characters(entries, nothing_changes):
    with nothing_changes(), pytest.raises(errors.BadDocument, match="Store it elsewhere"):
        entries.by_python("ü" * (MIB // 2))
    with nothing_changes(), pytest.raises(errors.BadDocument, match="one mebibyte"):
        entries.by_store(args='"' + "ü" * (MIB // 2) + '"')


def test_i4_64_mebibytes_are_refused_and_the_server_goes_on(entries, nothing_changes):
    large = document(64 * MIB)

    with nothing_changes(), pytest.raises(errors.BadDocument, match="at most one mebibyte"):
        entries.by_store(args=large)

    assert entries.by_store() > 0


def test_i4_the_python_door_refuses_64_mebibytes_without_copying_them_about(entries, nothing_changes):
    large = ["x" * MIB] * 64  # one text, named 64 times: the document exists only once it is encoded

    before = _peak_bytes()
    with nothing_changes(), pytest.raises(errors.BadDocument, match="Store it elsewhere"):
        entries.by_python(large)

    assert _peak_bytes() - before < 4 * 64 * MIB


def _peak_bytes() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def test_i4_a_result_past_the_limit_leaves_the_lease_as_it_is(store, nothing_changes):
    enqueue(store)
    lease = claim_one(store)

    with nothing_changes(), pytest.raises(errors.BadDocument, match="one mebibyte"):
        store.run(calls.complete(lease, document(MIB + 1)))

    store.run(calls.complete(lease, document(MIB)))


@pytest.mark.parametrize(("depth", "let_in"), [(64, True), (65, False), (5_000, False)])
def test_i4_a_document_is_64_deep_and_no_deeper(entries, nothing_changes, depth, let_in):
    nested = "[" * depth + "]" * depth
    if let_in:
        assert entries.by_store(args=nested) > 0
        return

    with nothing_changes():
        with pytest.raises(errors.BadDocument, match="at most 64 deep"):
            entries.by_store(args=nested)
        with pytest.raises(psycopg.errors.CheckViolation, match="at_most_64_deep"):
            entries.by_sql(args=nested)


def test_i4_the_python_door_names_the_depth_and_a_cycle(entries, nothing_changes):
    deep: list[object] = []
    for _ in range(70):
        deep = [deep]
    cycle: list[object] = []
    cycle.append(cycle)

    with nothing_changes():
        with pytest.raises(errors.BadDocument, match=r"deeper than 64 levels\. Flatten it"):
            entries.by_python(deep)
        with pytest.raises(errors.BadDocument, match=r"cyclic or nested deeper than 64 levels\. Flatten it"):
            entries.by_python(cycle)


def test_i4_the_rules_for_retrying_are_a_document_too(entries, nothing_changes):
    with nothing_changes():
        with pytest.raises(errors.BadDocument, match="one mebibyte"):
            entries.by_store(retry=document(MIB + 1))
        with pytest.raises(psycopg.errors.CheckViolation):
            entries.by_sql(retry="[" * 65 + "]" * 65)
