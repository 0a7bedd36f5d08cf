"""What works over a server needs gRPC, which is an extra."""

import os
from importlib.util import find_spec
from typing import Literal

from faultline.errors import ConfigError


def need_grpc() -> None:
    """Raise, with the remedy, where gRPC is not installed."""
    if find_spec("grpc") is None or find_spec("google.protobuf") is None:
        raise ConfigError("gRPC needs an extra: pip install 'faultline-queue[grpc]'")


def hush_grpc(verbosity: Literal["ERROR", "NONE"]) -> None:
    """Have gRPC's library write less to stderr, unless the environment says how much; before its first use.

    It writes past our log, as no JSON, and a line for each handshake that a stranger lets fail.
    """
    os.environ.setdefault("GRPC_VERBOSITY", verbosity)
