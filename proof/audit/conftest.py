"""The fixtures of the tests, for the audit's slower proofs."""

from tests.conftest import clock, database, db, server, store, template

__all__ = ["clock", "database", "db", "server", "store", "template"]
