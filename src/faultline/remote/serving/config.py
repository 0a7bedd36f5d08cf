"""GrpcConfig: where the gRPC server listens, with which certificates, and what it takes from a client."""

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Final

from faultline.access import LOOK_EVERY_SECONDS
from faultline.config import DEFAULT_LEASE
from faultline.errors import ConfigError
from faultline.server.addresses import Network, networks
from faultline.server.config import ServerConfig, Tls

MIB: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcConfig:
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
    """A proxy stands before it: then nobody is known to be on this machine."""
    trust_loopback: bool = False
    """Whether a call from this machine may read without a key; never one that was passed on."""
    proxies: tuple[Network, ...] = ()
    """Proxies that stand for many clients: the bound on connections of one address is not theirs."""
    reflection: bool = True

    # What one client may send.
    message_bytes_max: int = 4 * MIB
    messages_at_once_max: int = 64
    """Messages of unary calls that are being read, and large ones until they are answered; the next call
    waits. Heartbeats, results and outcomes have as many once more."""
    messages_at_once_per_key: int = 16
    message_seconds_max: float = 30.0
    """A call whose message has not come by then is ended."""
    head_bytes_max: int = 16_384
    streams_per_connection_max: int = 100
    connections_max: int = 4_000
    """A worker has two, its pacemaker's with it. Beyond it a new one is hung up on until others have gone."""
    connections_per_address: int = 2_000
    """Of one address that is no proxy; past it those without an admitted call are closed first."""
    unadmitted_max: int = 1_000
    """Connections without an admitted call, of all addresses; past it the oldest of them are closed."""
    sessions_max: int = 2_000
    sessions_per_key: int = 500
    unanswered_max: int = 32
    """Asks, Beats and Results of one session that wait for their answer, each kind for itself."""
    items_max: int = 1_000
    room_max: int = 1_000
    except_tasks_max: int = 50
    """Tasks that one Ask may except: each is compared with each job that its claim looks at."""
    jobs_max: int = 10_000
    """Jobs in one SubmitMany."""
    cargo_bytes_max: int = 6 * MIB
    """Arguments of jobs that were claimed and not yet sent, of all sessions. It takes 6 times the memory."""
    cargo_bytes_per_key: int = 3 * MIB
    answer_bytes_max: int = 32 * MIB
    """Jobs that Get and Wait tell of, until they are read; 1 MiB each while they are being looked up."""
    answer_bytes_per_key: int = 16 * MIB
    calls_at_once_max: int = 1_000
    calls_at_once_per_key: int = 250
    calls_per_second_per_key: float = 10_000.0
    """Unary calls and messages of sessions; heartbeats, results and outcomes have the same once more."""
    vital_at_once_max: int = 2_000
    """Heartbeat, Settle and Outcome: what keeps jobs running has room of its own."""
    vital_at_once_per_key: int = 500
    polls_max: int = 2_000
    """Lease calls, which wait for work."""
    polls_per_key: int = 500
    bad_keys_per_second: float = 5.0
    """Wrong keys from one address, before it has to wait."""
    waits_max: int = 300
    """Clients that wait for a job's end at once."""
    waits_per_key: int = 100

    # How long.
    wait_seconds_max: float = 30.0
    """The longest Ask."""
    client_wait_seconds_max: float = 60.0
    """The longest Wait."""
    connection_seconds_max: float = 3_600.0
    """Then its client is asked to come again, so that a new server gets its share."""
    connection_grace_seconds: float = 60.0
    handshake_seconds_max: float = 10.0
    """A connection that has not begun to speak HTTP/2 by then, TLS before it, is closed."""
    idle_seconds_max: float = 60.0
    """So is one without any call for so long; a client that calls again connects again, unaware of it."""
    unadmitted_seconds_max: float = 30.0
    """So is one none of whose calls was let in by then, whatever it does meanwhile."""
    hello_seconds_max: float = 10.0
    """A session that has not said Hello by then is ended: it would hold a place that others want."""
    keepalive_seconds: float = 20.0
    keepalive_timeout_seconds: float = 10.0
    ping_seconds_min: float = 5.0
    """A client that pings more often than this, three times, is cut off (GOAWAY, too_many_pings)."""
    key_check_seconds: float = LOOK_EVERY_SECONDS
    """How often the key of an open session, or of a long poll, is looked at again."""

    lease: timedelta = DEFAULT_LEASE
    timeout: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if not 0 < value < 2**31:
                raise ConfigError(f"the limit {field.name} is a number above 0; got {value!r}")
        if self.room_max > 1_000:
            raise ConfigError(f"room_max goes to 1000, the most that one claim takes; got {self.room_max}")

    @classmethod
    def of(cls, config: "GrpcConfig | ServerConfig") -> "GrpcConfig":
        """What `faultline server` was told, as far as it concerns gRPC."""
        if isinstance(config, GrpcConfig):
            return config
        if config.grpc is None:
            raise ConfigError("the server was told no address to listen on for gRPC")
        return cls(
            address=str(config.grpc), tls=config.tls, behind_proxy=config.behind_proxy,
            trust_loopback=config.trust_loopback,
            proxies=networks(config.proxies), unadmitted_seconds_max=config.limits.unadmitted_seconds_max,
            message_bytes_max=config.limits.message_bytes_max,
            streams_per_connection_max=config.limits.streams_per_connection_max,
            bad_keys_per_second=config.limits.bad_keys_per_second,
            calls_at_once_per_key=config.limits.calls_at_once_per_key,
            calls_per_second_per_key=config.limits.calls_per_second_per_key,
            waits_max=config.limits.waits_max, waits_per_key=config.limits.waits_per_key,
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
            # A client's own pings are welcome, with or without a call under way; a flood of them is not.
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.min_ping_interval_without_data_ms", int(self.ping_seconds_min * 1000)),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", int(self.ping_seconds_min * 1000)),
            ("grpc.http2.max_ping_strikes", 2),
            # Two servers on one port would share its callers by chance, one of them with other settings.
            ("grpc.so_reuseport", 0),
        ]
