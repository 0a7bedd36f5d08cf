"""I3: a small text of large exponents is refused before PostgreSQL prints it, and measured as it would be."""

import psycopg
import pytest

from faultline import errors
from tests.bad_input.entry_points import words

GROWING = "[" + ",".join(["1e131000"] * 200) + "]"


def test_i3_200_numbers_of_131_kilobytes_are_refused(entries, nothing_changes):
    """1,801 bytes in would be 26 million bytes out, in every page and every log that shows the job."""
    assert len(GROWING) < 2_000

    with nothing_changes():
        with pytest.raises(errors.BadDocument, match="within 1e308") as by_store:
            entries.by_store(args=GROWING)
        with pytest.raises(psycopg.errors.CheckViolation) as by_sql:
            entries.by_sql(args=GROWING)

    assert "\n" not in str(by_store.value)
    assert "a_documents_numbers_are_within_1e308" in words(by_sql.value)


@pytest.mark.parametrize("number", ["1e309", "-1e309", "9" * 309, "1e131000"])
def test_i3_a_number_beyond_1e308_is_refused_alone(entries, nothing_changes, number):
    with nothing_changes():
        with pytest.raises(errors.BadDocument, match="within 1e308"):
            entries.by_store(args=f'{{"a": {number}}}')
        with pytest.raises(psycopg.errors.CheckViolation, match="within_1e308"):
            entries.by_sql(args=f'{{"a": {number}}}')


def test_i3_the_python_door_names_the_number_and_the_remedy(entries, nothing_changes):
    with nothing_changes():
        with pytest.raises(
            errors.BadDocument, match=r"value\[1\] is a number beyond 1e308 .* Send it as text"
        ):
            entries.by_python([1, 10**309])
        with pytest.raises(errors.BadDocument, match="Store it elsewhere"):
            entries.by_python([1e308] * 4_000)


def test_i3_what_python_lets_through_the_database_lets_through(entries):
    """The two measures agree at the edge, so the database never refuses a job that the client accepts."""
    fits = [1e308] * 3_371

    assert entries.by_python(fits) > 0
    with pytest.raises(errors.BadDocument, match="Store it elsewhere"):
        entries.by_python([*fits, 1e308])
