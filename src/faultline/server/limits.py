"""Every limit of the server, with its number, in one place."""

from dataclasses import dataclass, fields
from typing import Final

from faultline.errors import ConfigError

MIB: Final = 1_048_576
PAGE_MAX: Final = 500
"""The longest page of a list; in the OpenAPI document too, so it is the same for every server."""
CLAIM_JOBS_MAX: Final = 1_000
"""The most that one claim takes from the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedLimits:
    """The bounds that are the same over HTTP and gRPC."""

    batch_jobs_max: int = 10_000
    """Jobs in one submit of many."""
    handshake_seconds_max: float = 10.0
    """A connection that has not finished its TLS (over gRPC: begun HTTP/2) by then is closed."""
    unadmitted_seconds_max: float = 30.0
    """A connection without an admitted request by then is closed; probes open another one."""
    calls_at_once_per_key: int = 250
    calls_per_second_per_key: float = 10_000.0
    """Over gRPC unary calls and messages of sessions; heartbeats, results and outcomes have as many again."""
    bad_keys_per_second: float = 5.0
    """Wrong keys from one address before it has to wait."""
    waits_max: int = 300
    """Clients that wait for a job's end. They have a budget of their own, apart from other calls."""
    waits_per_key: int = 100
    wait_seconds_max: float = 60.0
    """The longest wait for a job's end."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.type not in (int, float):  # an address, a certificate
                continue
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**31:
                raise ConfigError(f"the limit {field.name} is a number above 0; got {value!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits(SharedLimits):
    """The bounds on what the server accepts over HTTP, and on how long it waits.

    >>> Limits().body_bytes_max
    1048576
    >>> Limits(body_bytes_max=0)
    Traceback (most recent call last):
    faultline.errors.ConfigError: the limit body_bytes_max is a number above 0; got 0
    """

    # Sizes of one request.
    body_bytes_max: int = MIB
    batch_bytes_max: int = 4 * MIB
    """The body of a submit of many jobs."""
    head_bytes_max: int = 32_768
    """The request line and all headers together."""

    # Times of one client.
    head_seconds_max: float = 10.0
    """From the first byte (of a new connection: from its arrival) until all headers are there."""
    body_seconds_max: float = 30.0
    idle_seconds_max: float = 30.0
    """A connection without a request is closed after this time."""
    send_seconds_max: float = 30.0
    """A client that does not read its answer for this time is cut off."""
    linger_seconds_max: float = 2.0
    """The time in which a refused client's bytes are read and dropped, so that it can read the refusal."""
    linger_bytes_max: int = 8 * MIB

    # Numbers at the same time.
    connections_max: int = 1_000
    """Past the bound the connection that was idle longest makes room for the new one."""
    connections_per_address: int = 500
    """The same for one address; a configured proxy may have all of them."""
    pipelined_max: int = 16
    """Requests of one connection that wait behind the one under way."""
    calls_at_once_max: int = 500
    answer_bytes_max: int = 16 * MIB
    """Jobs and ledgers in answers until they are read; 1 MiB each while they are looked up."""
    answer_bytes_per_key: int = 6 * MIB
    subscribers_max: int = 100
    subscribers_per_key: int = 20

    # The server's own work.
    answer_seconds_max: float = 14.0
    """A request with a longer wait for the database in total ends with an error."""
    comment_seconds: float = 15.0
    """The interval of comments on a silent event stream: proxies would cut it otherwise."""
    events_buffered_max: int = 1_000
    bulk_jobs_max: int = 10_000
    drills_at_once_max: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcLimits(SharedLimits):
    """The bounds on what the server accepts over gRPC, and on how long it waits."""

    # Messages.
    message_bytes_max: int = 4 * MIB
    messages_at_once_max: int = 64
    """Messages of unary calls that are being read, and large ones until they are answered; the next call
    waits. Heartbeats, results and outcomes have as many once more."""
    messages_at_once_per_key: int = 16
    message_seconds_max: float = 30.0
    """A call without its whole message after this time is ended."""
    head_bytes_max: int = 16_384
    items_max: int = 1_000
    """Leases or results in one message."""
    room_max: int = CLAIM_JOBS_MAX
    """Jobs that one Ask is for."""
    except_tasks_max: int = 50
    """Tasks that one Ask may except: each is compared with each job that the claim reads."""

    # Connections and sessions.
    connections_max: int = 4_000
    """A worker has two, its pacemaker's included. Beyond the bound a new connection is closed."""
    connections_per_address: int = 2_000
    """Connections of one address that is no proxy; past it one without an admitted call is closed first."""
    unadmitted_max: int = 1_000
    """Connections without an admitted call, of all addresses; past it the oldest of them are closed."""
    streams_per_connection_max: int = 100
    sessions_max: int = 2_000
    sessions_per_key: int = 500
    unanswered_max: int = 32
    """Asks, Beats and Results of one session without an answer, counted for each kind."""

    # Memory.
    asked_queues_max: int = 2_000_000
    """Queues of waiting Asks and Leases, counted for each of them: each takes 60 bytes."""
    asked_queues_per_key: int = 200_000
    unsent_bytes_max: int = 6 * MIB
    """Arguments of claimed, unsent jobs of all sessions. The memory in use is 6 times as much."""
    unsent_bytes_per_key: int = 3 * MIB
    answer_bytes_max: int = 32 * MIB
    """Jobs in answers to Get and Wait until they are read; 1 MiB each while they are looked up."""
    answer_bytes_per_key: int = 16 * MIB

    # Numbers at the same time.
    calls_at_once_max: int = 1_000
    vital_at_once_max: int = 2_000
    """Heartbeat, Settle and Outcome: the calls that keep jobs running have a budget of their own."""
    vital_at_once_per_key: int = 500
    polls_max: int = 2_000
    """Lease calls, which wait for work."""
    polls_per_key: int = 500

    # Times.
    ask_seconds_max: float = 30.0
    """The longest wait of an Ask for a job."""
    connection_seconds_max: float = 3_600.0
    """Past it the client is asked to connect again, so that a new server gets its share."""
    connection_grace_seconds: float = 60.0
    idle_seconds_max: float = 60.0
    """A connection without a call for this time is closed; its client connects again with the next call."""
    hello_seconds_max: float = 10.0
    """A session without a Hello by then is ended: it would hold a place that others need."""
    keepalive_seconds: float = 20.0
    keepalive_timeout_seconds: float = 10.0
    ping_seconds_min: float = 5.0
    """A client with more frequent pings, three times, is cut off (GOAWAY, too_many_pings)."""

    def __post_init__(self) -> None:
        SharedLimits.__post_init__(self)
        if self.room_max > CLAIM_JOBS_MAX:
            raise ConfigError(
                f"room_max goes to {CLAIM_JOBS_MAX}, the most that one claim takes; got {self.room_max}"
            )
