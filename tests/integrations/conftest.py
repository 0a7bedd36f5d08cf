"""A store and tables for effects, as the tests of the worker have them."""

from tests.worker.conftest import store

__all__ = ["store"]
