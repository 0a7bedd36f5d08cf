"""Every limit of the server, with its number: the one place where they stand."""

from dataclasses import dataclass, fields
from typing import Final

from faultline.errors import ConfigError

MIB: Final = 1_048_576
PAGE_MAX: Final = 500
"""The longest page of a list; in the OpenAPI document too, so it is the same for every server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the server takes from a client, and how long it waits for one.

    >>> Limits().body_bytes_max
    1048576
    >>> Limits(body_bytes_max=0)
    Traceback (most recent call last):
    faultline.errors.ConfigError: the limit body_bytes_max is a number above 0; got 0
    """

    # HTTP: what one request may weigh.
    body_bytes_max: int = MIB
    batch_bytes_max: int = 4 * MIB
    """The body of a submit of many jobs."""
    batch_jobs_max: int = 10_000
    head_bytes_max: int = 32_768
    """The request line and all headers together."""

    # HTTP: how long a client may take.
    head_seconds_max: float = 10.0
    """From the first byte (of a new connection: from its arrival) until all headers are there."""
    body_seconds_max: float = 30.0
    idle_seconds_max: float = 30.0
    """A connection that is kept alive and says nothing is closed after this."""
    handshake_seconds_max: float = 10.0
    unadmitted_seconds_max: float = 30.0
    """A connection none of whose requests was let in by then is closed; probes open another one."""
    send_seconds_max: float = 30.0
    """A client that does not read its answer for so long is cut off."""
    linger_seconds_max: float = 2.0
    """How long what a refused client still sends is thrown away, so that it can read why it was refused."""
    linger_bytes_max: int = 8 * MIB

    # How many at once.
    connections_max: int = 1_000
    """Beyond it the connection that was idle for longest makes room for the new one."""
    connections_per_address: int = 500
    """The same for those of one address; a proxy that was named may have as many as there are."""
    pipelined_max: int = 16
    """Requests that wait on one connection behind the one that is being answered."""
    calls_at_once_max: int = 500
    calls_at_once_per_key: int = 250
    calls_per_second_per_key: float = 10_000.0
    bad_keys_per_second: float = 5.0
    """Wrong keys from one address, before it has to wait."""
    subscribers_max: int = 100
    subscribers_per_key: int = 20
    waits_max: int = 300
    """Long polls have a budget of their own: they take no room from calls."""
    waits_per_key: int = 100

    # How long the server keeps at something.
    wait_seconds_max: float = 60.0
    """The longest poll."""
    answer_seconds_max: float = 14.0
    """A request that waits longer for the database in all is given up, and the client told so."""
    comment_seconds: float = 15.0
    """An event stream that has nothing to say says so this often, or proxies would cut it."""
    events_buffered_max: int = 1_000
    bulk_jobs_max: int = 10_000
    drills_at_once_max: int = 1

    # gRPC.
    message_bytes_max: int = 4 * MIB
    streams_per_connection_max: int = 100

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**40:
                raise ConfigError(f"the limit {field.name} is a number above 0; got {value!r}")
