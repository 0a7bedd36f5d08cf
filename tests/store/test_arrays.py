"""Arrays packed by us: the server reads what we meant, whatever the elements."""

import subprocess
import sys
from datetime import timedelta
from uuid import uuid4

import psycopg
import pytest

from faultline.store.driver.arrays import ArrayParam, pack, register_types

ONE = uuid4()


@pytest.mark.parametrize(
    ("values", "of"),
    [
        ([], "bigint"),
        ([], "text"),
        ([0, -1, 2**63 - 1, -(2**63)], "bigint"),
        (["", "a", "ü", "日本", "😀", '{"a":"b,c"}', "null", "NULL"], "text"),
        (["a", None, "b", None], "text"),
        ([None], "text"),
        ([ONE, ONE, uuid4(), ONE], "uuid"),
        (list(range(10_000)), "bigint"),
        ([timedelta(0), timedelta(days=3, microseconds=7), timedelta(seconds=-1.5)], "interval"),
    ],
)
def test_the_server_reads_back_what_was_packed(db, values, of):
    register_types(db)
    assert db.execute(f"select %b::{of}[]", [ArrayParam(values, of)]).fetchone() == (values,)


def test_text_goes_in_the_encoding_of_its_connection(database):
    with psycopg.connect(database, client_encoding="latin1") as conn:
        register_types(conn)
        assert conn.execute("select %b::text[]", [ArrayParam(["ü"], "text")]).fetchone() == (["ü"],)


def test_what_the_server_cannot_hold_is_refused_before_it_is_sent():
    with pytest.raises(psycopg.DataError, match="NUL"):
        pack(ArrayParam(["a\0b"], "text"))
    with pytest.raises(UnicodeEncodeError):
        pack(ArrayParam(["\ud800"], "text"))


OLDER = """
import sys, psycopg
conn = psycopg.connect(sys.argv[1])
conn.execute("select %b::bigint[]", [[1]])  # the driver copies its adapters at a connection's first use
from faultline.store import calls
from faultline.store.pool import Store
from faultline.job import NewJob
jobs = [NewJob(task="t", args="{}", max_attempts=1)] * 2
print(len(Store.run_in(conn, calls.enqueue_many(jobs))))
"""


def test_a_connection_older_than_we_are_can_carry_an_array(database):
    said = subprocess.run(
        [sys.executable, "-c", OLDER, database], capture_output=True, text=True, timeout=60, check=False
    )
    assert said.stdout == "2\n", said.stderr
