"""The fixtures of the tests, for the audit's slower proofs."""

from tests.conftest import clock, database, db, prepared, recycled, server, store, template

__all__ = [
    "clock", "database", "db", "prepared", "recycled", "server", "store", "template",
]  # fmt: skip
