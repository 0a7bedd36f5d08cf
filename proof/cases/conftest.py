"""What a case needs of a worker's tests: a store, tables for effects, real workers, a way that can be cut."""

from tests.worker.conftest import prepared, proxy, real_worker, store  # noqa: F401
