"""GrpcConfig: address and certificates of the gRPC server, beside its limits."""

from dataclasses import dataclass, fields
from datetime import timedelta

from faultline.config import DEFAULT_LEASE
from faultline.errors import ConfigError
from faultline.server.auth import LOOK_EVERY_SECONDS
from faultline.server.config import ServerConfig, Tls
from faultline.server.limits import GrpcLimits, SharedLimits
from faultline.server.listener.address_limits import Network, networks


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcConfig(GrpcLimits):
    """How the gRPC server listens, and its limits with their numbers.

    >>> GrpcConfig(address="127.0.0.1:0").message_bytes_max
    4194304
    >>> GrpcConfig(sessions_per_key=0)
    Traceback (most recent call last):
    faultline.errors.ConfigError: the limit sessions_per_key is a number above 0; got 0
    """

    address: str = "127.0.0.1:8001"
    tls: Tls | None = None
    behind_proxy: bool = False
    """True behind a proxy: then every connection may be the proxy's."""
    proxies: tuple[Network, ...] = ()
    """Proxies that stand for many clients: the bound on connections of one address does not apply to them."""
    reflection: bool = True
    key_check_seconds: float = LOOK_EVERY_SECONDS
    """The interval between checks of the key of an open session or a long poll."""
    lease: timedelta = DEFAULT_LEASE
    timeout: timedelta = timedelta(hours=1)

    @classmethod
    def of(cls, config: "GrpcConfig | ServerConfig") -> "GrpcConfig":
        """The part of the settings of `faultline server` that concerns gRPC."""
        if isinstance(config, GrpcConfig):
            return config
        if config.grpc is None:
            raise ConfigError("the server was told no address to listen on for gRPC")
        shared = {field.name: getattr(config.limits, field.name) for field in fields(SharedLimits)}
        return cls(
            address=str(config.grpc), tls=config.tls, behind_proxy=config.behind_proxy,
            proxies=networks(config.proxies), **shared,
        )  # fmt: skip

    def options(self) -> list[tuple[str, int]]:
        """The same as gRPC's own options."""
        return [
            ("grpc.max_receive_message_length", self.message_bytes_max),
            ("grpc.max_send_message_length", self.message_bytes_max),
            ("grpc.max_metadata_size", self.head_bytes_max),
            ("grpc.absolute_max_metadata_size", self.head_bytes_max),
            ("grpc.max_concurrent_streams", self.streams_per_connection_max),
            ("grpc.max_allowed_incoming_connections", self.connections_max),
            ("grpc.server_handshake_timeout_ms", int(self.handshake_seconds_max * 1000)),
            ("grpc.max_connection_idle_ms", int(self.idle_seconds_max * 1000)),
            ("grpc.max_connection_age_ms", int(self.connection_seconds_max * 1000)),
            ("grpc.max_connection_age_grace_ms", int(self.connection_grace_seconds * 1000)),
            ("grpc.keepalive_time_ms", int(self.keepalive_seconds * 1000)),
            ("grpc.keepalive_timeout_ms", int(self.keepalive_timeout_seconds * 1000)),
            # A client's pings are welcome, with or without an open call; a flood of them is not.
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", int(self.ping_seconds_min * 1000)),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", int(self.ping_seconds_min * 1000)),
            ("grpc.http2.max_ping_strikes", 2),
            # Two servers on one port would share its callers at random, perhaps with different settings.
            ("grpc.so_reuseport", 0),
        ]
