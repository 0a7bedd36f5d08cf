"""A channel to one server: its options, and its errors in our words."""

import contextlib
from pathlib import Path
from typing import Any, Final

import grpc
import grpc.aio

from faultline import errors
from faultline.remote.server_address import ServerAddress
from faultline.rpc.v1 import problem_pb2, worker_pb2

MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
"""The bound on one incoming message; a server sends less, in parts where it must."""

OPTIONS: Final[list[tuple[str, Any]]] = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
    # A dead peer is noticed within half a minute, also on an idle channel.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    # We time the retries: a channel by itself would sleep through a server's return.
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 50),
    # gRPC's name for the time that a connection may take to be made. Each call has a bound of its own;
    # 50 ms would be less than a handshake takes over a long line, or on a busy machine.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Not shared in this process: a broken channel is dropped, with all its state.
    ("grpc.use_local_subchannel_pool", 1),
    # Proxies of the environment are for the web.
    ("grpc.enable_http_proxy", 0),
]

DETAILS: Final = "grpc-status-details-bin"

REASONS: Final[dict[int, errors.LossReason]] = {
    worker_pb2.REASON_TOKEN_MISMATCH: "token_mismatch",
    worker_pb2.REASON_SETTLED: "settled",
    worker_pb2.REASON_CANCELLED: "cancelled",
    worker_pb2.REASON_GONE: "gone",
}

_KINDS: Final[dict[grpc.StatusCode, type[errors.FaultlineError]]] = {
    grpc.StatusCode.UNAUTHENTICATED: errors.NotAuthenticated,
    grpc.StatusCode.PERMISSION_DENIED: errors.NotAllowed,
    grpc.StatusCode.INVALID_ARGUMENT: errors.InputError,
    grpc.StatusCode.OUT_OF_RANGE: errors.OutOfBounds,
    grpc.StatusCode.NOT_FOUND: errors.JobNotFound,
    grpc.StatusCode.FAILED_PRECONDITION: errors.WrongState,
    grpc.StatusCode.UNIMPLEMENTED: errors.ConfigError,
}
"""Statuses about the call itself; all others are about the moment, and allow another try."""

_SHOW_A_KEY: Final = ". A worker shows the key that FAULTLINE_API_KEY or --key-file gives it"


_CHECK: Final = "check the address in --server, and that `faultline server --grpc` runs there"


def open_channel(address: ServerAddress, target: str) -> grpc.aio.Channel:
    """A channel for the loop."""
    if not address.secure:
        return grpc.aio.insecure_channel(target, options=OPTIONS)
    return grpc.aio.secure_channel(target, _credentials(address), options=OPTIONS)


def open_plain_channel(address: ServerAddress, target: str) -> grpc.Channel:
    """A channel for plain code, such as a pacemaker's."""
    if not address.secure:
        return grpc.insecure_channel(target, options=OPTIONS)
    return grpc.secure_channel(target, _credentials(address), options=OPTIONS)


def metadata(address: ServerAddress) -> tuple[tuple[str, str], ...]:
    """The metadata of each call: the key, in a header and never in a URL."""
    return () if address.key is None else (("authorization", f"Bearer {address.key}"),)


def _credentials(address: ServerAddress) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(_bytes(address.ca), _bytes(address.cert_key), _bytes(address.cert))


def _bytes(path: str | None) -> bytes | None:
    if path is None:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise errors.ConfigError(f"the certificate cannot be read from {path}: {error.strerror}") from error


def named(fault: grpc.RpcError, target: str, *, sent: bool) -> errors.FaultlineError:
    """The error of ours for a status; CannotConnect and ServerUnavailable differ in whether it was sent."""
    code, said = fault.code(), _first_line(fault.details())
    if refusal := _refusal(fault):
        return lease_lost(refusal)
    if kind := _KINDS.get(code):
        how = _SHOW_A_KEY if kind is errors.NotAuthenticated else ""
        return kind(f"the server at {target} refused: {said}{how}")
    words = f"the server at {target} is away or could not do it ({code.name.lower()}): {_explained(said)}"
    return errors.ServerUnavailable(words) if sent else errors.CannotConnect(words)


def _explained(said: str) -> str:
    """The library's error for a wrong address, in our words.

    >>> _explained("SSL_ERROR_SSL: error:100000f7:SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER")
    'it speaks without TLS there; write grpc:// for grpcs://'
    >>> _explained("DNS resolution failed for queue.example:8001").partition(";")[0]
    'its name is not known'
    >>> _explained("the database is away: Connection refused")
    'the database is away: Connection refused'
    """
    if "Expected SETTINGS frame" in said:
        return "it does not speak gRPC there; give the address of its --grpc, not of its --http"
    if "WRONG_VERSION_NUMBER" in said:
        return "it speaks without TLS there; write grpc:// for grpcs://"
    if said.startswith(("errors resolving", "DNS resolution failed")):
        return f"its name is not known; {_CHECK}"
    # A server's own errors begin otherwise, and may be about a database that refused it.
    if said.startswith(("failed to connect to all", "connections to all")) and "handshake" not in said:
        refused = "nothing listens there (Connection refused)"
        return f"{refused if 'Connection refused' in said else said}; {_CHECK}"
    return said


def lease_lost(refusal: worker_pb2.Refusal) -> errors.LeaseLost:
    """The refusal of a fence, as the database's own errors have it."""
    current = refusal.current_token if refusal.HasField("current_token") else None
    return errors.LeaseLost(refusal.job_id, refusal.token, current, REASONS.get(refusal.reason, "gone"))


def _refusal(fault: grpc.RpcError) -> worker_pb2.Refusal | None:
    """A refusal of the fence, where the status has one in its details."""
    trailing: Any = fault.trailing_metadata() or ()
    for name, value in trailing:
        if name == DETAILS:
            with contextlib.suppress(ValueError):
                for detail in problem_pb2.Status.FromString(value).details:
                    refusal = worker_pb2.Refusal()
                    if detail.Unpack(refusal):
                        return refusal
    return None


def _first_line(said: str | None) -> str:
    return (said or "no reason was given").strip().splitlines()[0][:300]
