"""The gRPC server: sessions of workers and calls of clients, over the ordinary verbs. No state of its own."""

try:
    import google.protobuf  # noqa: F401
    import grpc  # noqa: F401
except ImportError as error:
    from faultline.errors import ConfigError

    raise ConfigError("gRPC needs an extra: pip install 'faultline-queue[grpc]'") from error

from faultline.server.grpc.grpc_config import GrpcConfig
from faultline.server.grpc.grpc_server import GrpcServer

__all__ = ["GrpcConfig", "GrpcServer"]
