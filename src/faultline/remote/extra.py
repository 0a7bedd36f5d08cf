"""What works over a server needs gRPC, which is an extra."""

from importlib.util import find_spec

from faultline.errors import ConfigError


def need_grpc() -> None:
    """Raise, with the remedy, where gRPC is not installed."""
    if find_spec("grpc") is None or find_spec("google.protobuf") is None:
        raise ConfigError("gRPC needs an extra: pip install 'faultline-queue[grpc]'")
