"""Work over a server needs gRPC, which is an extra."""

import os
from importlib.util import find_spec
from typing import Literal

from faultline.errors import ConfigError


def require_grpc() -> None:
    """Raise, with the remedy, where gRPC is not installed."""
    if find_spec("grpc") is None or find_spec("google.protobuf") is None:
        raise ConfigError("gRPC needs an extra: pip install 'faultline-queue[grpc]'")


def quiet_grpc(verbosity: Literal["ERROR", "NONE"]) -> None:
    """Make gRPC's library write less to stderr, unless the environment sets the level; before its first use.

    It writes past our log, not as JSON, with a line for each failed handshake.
    """
    os.environ.setdefault("GRPC_VERBOSITY", verbosity)
