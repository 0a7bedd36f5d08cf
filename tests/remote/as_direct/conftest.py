"""Each of the worker's own tests has a database of its own, and a server of its own before it."""

from tests.conftest import database, recycled
from tests.worker.conftest import prepared, store

__all__ = ["database", "prepared", "recycled", "store"]
