"""The fixtures of the tests, for the suites that are too slow to stand among them."""

from tests.conftest import (  # noqa: F401
    clock,
    database,
    db,
    empty_database,
    prepared,
    recycled,
    server,
    shared,
    template,
)  # fmt: skip
