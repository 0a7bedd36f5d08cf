"""The blocks of columns that the functions name: they are the columns of the tables."""

import pytest

from faultline.sql.columns import BLOCKS


@pytest.fixture
def columns(db):
    """The columns of a table."""

    def of(table):
        return {
            name
            for (name,) in db.execute(
                "select attname::text from pg_attribute"
                " where attrelid = ('faultline.' || %s)::regclass and attnum > 0 and not attisdropped",
                [table],
            )
        }

    return of


def test_what_active_and_later_share_moves_with_a_job(columns):
    assert set(BLOCKS["job_columns"]) == (columns("active") & columns("later")) - {"id"}


def test_later_has_nothing_else_but_its_moment_and_its_place_at_a_gate(columns):
    assert columns("later") - set(BLOCKS["job_columns"]) == {"id", "run_at", "place", "holds"}


def test_a_dead_job_has_all_that_a_job_keeps(columns):
    assert set(BLOCKS["kept_columns"]) <= columns("dead")
    assert columns("dead") - set(BLOCKS["kept_columns"]) == {
        "id", "died_at", "reason", "token", "attempt", "crashes", "crashes_alone", "key", "error",
    }  # fmt: skip


def test_a_new_job_has_its_columns(columns):
    assert set(BLOCKS["new_columns"]) <= set(BLOCKS["job_columns"])


def test_the_database_has_every_block_spelled_out(db):
    (left,) = db.execute(
        "select count(*) from pg_proc where pronamespace = 'faultline'::regnamespace and prosrc ~ %s",
        ["|".join(BLOCKS)],
    ).fetchone()

    assert left == 0
