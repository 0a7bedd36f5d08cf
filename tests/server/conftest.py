"""A gRPC server for tests of both doors."""

from tests.remote.conftest import served

__all__ = ["served"]
