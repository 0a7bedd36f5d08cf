"""A child imports the app with an address of the database that the app can read."""

import os

import pytest
from psycopg.conninfo import conninfo_to_dict

from faultline.worker.processes.child_environment import as_url, name_database

PAIRS = "dbname=shop client_encoding=UTF8 user=app password='p w' host=127.0.0.1 port=5433"
URL = "postgresql://app:p%20w@127.0.0.1:5433/shop"


def named(monkeypatch: pytest.MonkeyPatch, before: str | None, dsn: str) -> str:

    monkeypatch.setenv("FAULTLINE_POOLER", "")
    monkeypatch.setenv("FAULTLINE_DSN", before or "")
    if before is None:
        monkeypatch.delenv("FAULTLINE_DSN")
    name_database(dsn, "none")
    assert os.environ["FAULTLINE_POOLER"] == "none"
    return os.environ["FAULTLINE_DSN"]


def test_an_address_that_names_the_database_stays_as_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Django's settings may be made of it, and a worker of Django has its DSN as pairs."""
    assert named(monkeypatch, URL, PAIRS) == URL


@pytest.mark.parametrize("before", [None, "", "postgresql://127.0.0.1/blog", "neither URL nor pairs"])
def test_the_address_of_another_database_becomes_the_url_of_the_workers(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    assert named(monkeypatch, before, PAIRS) == f"{URL}?client_encoding=UTF8"


@pytest.mark.parametrize(
    "dsn",
    [
        PAIRS, URL, "dbname=shop", "host=/run/postgresql dbname=shop", "host=db1,db2 port=1,2 dbname=shop",
        "host=::1 port=5433 dbname=shop", "host=db dbname=shop options='-c search_path=a,b -c role=c'",
        "user=a@b password=':/?#' host=db dbname='a b/c'", "service=shop",
    ],
)  # fmt: skip
def test_a_url_says_what_the_pairs_said(dsn: str) -> None:
    assert conninfo_to_dict(as_url(dsn)) == conninfo_to_dict(dsn)
    assert as_url(dsn).startswith("postgresql://")
