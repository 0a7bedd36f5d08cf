"""The fixtures of the tests, for the suites that are too slow to stand among them."""

from tests.conftest import clock, database, db, empty_database, server, shared, template  # noqa: F401
