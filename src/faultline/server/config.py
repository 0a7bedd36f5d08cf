"""ServerConfig: the server's addresses, certificates, rights and limits."""

import ipaddress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from faultline.errors import ConfigError
from faultline.server.limits import Limits
from faultline.server.listener.address_limits import networks

HTTP_PORT: Final = 8000
GRPC_PORT: Final = 8001
_FORWARDED: Final = frozenset({
    b"forwarded", b"via", b"x-real-ip", b"x-client-ip", b"x-cluster-client-ip", b"x-original-host",
    b"cf-connecting-ip", b"true-client-ip", b"fly-client-ip",
})  # fmt: skip
_FORWARDED_BEGINS: Final = (b"x-forwarded", b"x-envoy-")

_LOOPBACK_NAMES: Final = frozenset({"localhost", "ip6-localhost"})


def is_of_a_proxy(header: bytes) -> bool:
    """Whether a proxy says by this header that it passes a request on; many proxies set only one of them.

    >>> is_of_a_proxy(b"x-forwarded-scheme"), is_of_a_proxy(b"fly-client-ip"), is_of_a_proxy(b"accept")
    (True, True, False)
    """
    return header in _FORWARDED or header.startswith(_FORWARDED_BEGINS)


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """A host and a port to listen on.

    >>> ListenAddress.parse("127.0.0.1:8000")
    ListenAddress(host='127.0.0.1', port=8000)
    >>> str(ListenAddress.parse("[::1]:0"))
    '[::1]:0'
    >>> ListenAddress.parse("0.0.0.0").is_loopback
    False
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, port: int = HTTP_PORT) -> "ListenAddress":
        """Read `HOST:PORT`, `[IPV6]:PORT`, `HOST` or `:PORT`; the default is loopback and `port`."""
        host, digits = _split(text.strip())
        if not digits:
            return cls(host or "127.0.0.1", port)
        if not (digits.isascii() and digits.isdigit() and int(digits) < 65_536):
            raise ConfigError(f"{text[:80]!a} is not an address; write it as 127.0.0.1:8000 or [::1]:8000")
        return cls(host or "127.0.0.1", int(digits))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _split(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if bracket and (not rest or rest.startswith(":")):
            return host, rest[1:]
        raise ConfigError(f"{text[:80]!a} is not an address; an IPv6 one is written [::1]:8000")
    if text.count(":") > 1:
        return text, ""
    host, _, digits = text.partition(":")
    return host, digits


def is_loopback(host: str | None) -> bool:
    """Whether a host's name or address belongs to this machine.

    >>> is_loopback("127.0.0.5"), is_loopback("::1"), is_loopback("192.0.2.1"), is_loopback(None)
    (True, True, False, False)
    """
    if not host:
        return False
    if host.lower() in _LOOPBACK_NAMES:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The files of TLS: certificate and key; for clients, their CA and the list of revoked certificates."""

    cert: Path
    key: Path
    client_ca: Path | None = None
    revoked: Path | None = None
    """SHA-256 fingerprints of revoked client certificates, one a line."""

    def __post_init__(self) -> None:
        named = (
            ("cert", self.cert), ("key", self.key), ("client-ca", self.client_ca), ("revoked", self.revoked),
        )  # fmt: skip
        if self.revoked is not None and self.client_ca is None:
            raise ConfigError(
                "--tls-revoked lists client certificates, and without --tls-client-ca none is asked for"
            )
        for name, file in named:
            if file is not None and not file.is_file():
                raise ConfigError(f"--tls-{name}: there is no file {str(file)!a}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """The settings of a server's listeners. Their safety is checked at the start: it depends on the keys.

    >>> ServerConfig().http
    ListenAddress(host='127.0.0.1', port=8000)
    """

    http: ListenAddress | None = ListenAddress("127.0.0.1", HTTP_PORT)
    grpc: ListenAddress | None = None
    tls: Tls | None = None
    behind_proxy: bool = False
    """True behind a proxy that ends TLS. Then no address proves that a client is on this machine."""
    trust_loopback: bool = False
    """Clients on this machine may read without a key; a reverse proxy there would publish everything."""
    proxies: tuple[str, ...] = ()
    """Addresses or networks of proxies: one address there stands for many clients."""
    hosts: tuple[str, ...] = ()
    """Host names of the server, beside its own address: the allowed values of a Host header."""
    watchdog: bool = True
    drills: bool = False
    """Serve the routes of drills: an admin's key may then start processes that break things on purpose."""
    grace: timedelta = timedelta(seconds=25)
    """The time that calls may take to end when the server stops."""
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.http is None and self.grpc is None:
            raise ConfigError("a server listens for HTTP, for gRPC or for both; it was told neither")
        if self.grace < timedelta(0):
            raise ConfigError("grace is how long calls may take to end; it cannot be negative")
        networks(self.proxies)
        if self.trust_loopback and (self.behind_proxy or self.proxies):
            raise ConfigError(
                "--trust-loopback lets clients on this machine read without a key, and a proxy may "
                "be there: leave it out, or --behind-proxy and --trust-proxy"
            )

    @property
    def addresses(self) -> tuple[ListenAddress, ...]:
        """Every address it listens on."""
        return tuple(address for address in (self.http, self.grpc) if address is not None)
