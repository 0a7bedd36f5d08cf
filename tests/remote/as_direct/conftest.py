"""Each of the worker's own tests has a database of its own, and a server of its own before it."""

from tests.conftest import database
from tests.worker.conftest import store

__all__ = ["database", "store"]
