"""A gRPC server for tests of both APIs."""

from tests.grpc.conftest import served

__all__ = ["served"]
