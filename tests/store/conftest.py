"""The store's own tests use what the tests of the SQL use."""

from tests.sql.conftest import clock, db, shared, store

__all__ = ["clock", "db", "shared", "store"]
