"""RequestHead: a request's head, read once, for the checks of RequestGuard."""

import re
import secrets
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from faultline.errors import NotAuthenticated
from faultline.server.auth import Credentials
from faultline.server.config import is_of_a_proxy
from faultline.server.problems import KEY_IN_URL, MALFORMED, RequestRefused

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
ONCE: Final = frozenset({b"host", b"authorization", b"idempotency-key", b"content-type", b"origin"})
"""Headers that may come only once: with two of them, this server and a proxy may read different ones."""

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_NO_HOST: Final = re.compile(r"[\x00-\x20\x7f@/\\?#]")
"""Characters that no Host header has: some proxies read the name before them, some the one behind them."""
_A_KEY: Final = re.compile(rb"flk_|(?:^|&)(?:api_?key|access_token|authorization)=", re.IGNORECASE)


class RequestHead:
    """The values of a request's head."""

    __slots__ = ("body_bytes", "headers", "id", "method", "passed_on", "route", "scope")

    def __init__(self, scope: Any) -> None:
        self.scope = scope
        self.body_bytes = 0
        self.method: str = scope["method"]
        root: str = scope.get("root_path", "")
        path: str = scope["path"]
        self.route = path[len(root) :] if root and path.startswith(root) else path
        self.headers: dict[bytes, str] = {}
        self.passed_on = False
        """Whether a proxy passed it on: then its address is not the client's."""
        self.id = ""
        for name, value in scope["headers"]:
            if is_of_a_proxy(name):
                self.passed_on = True
            elif name not in self.headers:
                self.headers[name] = value.decode("latin-1")
            elif name in ONCE:
                self.headers[name] = "\0"  # refused by `check`: an error cannot be answered from here
        given = self.headers.get(b"x-request-id", "")
        self.id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)

    @property
    def is_safe(self) -> bool:
        """Whether the request only reads."""
        return self.method in SAFE

    @property
    def has_body(self) -> bool:
        return (
            self.headers.get(b"content-length", "0").strip("0") != "" or b"transfer-encoding" in self.headers
        )

    @property
    def length(self) -> int | None:
        """The announced length of the body."""
        said = self.headers.get(b"content-length", "")
        return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else None

    def check(self) -> None:
        """Refuse heads that no correct client sends."""
        if any("\0" in self.headers.get(name, "") for name in ONCE):
            raise RequestRefused(MALFORMED, "a header that is sent once was sent twice")
        if _NO_HOST.search(self.headers.get(b"host", "")):
            raise RequestRefused(MALFORMED, "the Host header is a name or an address, and perhaps a port")
        query: bytes = self.scope.get("query_string", b"")
        if (query and _A_KEY.search(query)) or "flk_" in self.scope["path"]:
            raise RequestRefused(KEY_IN_URL)

    @property
    def host(self) -> str:
        """The host name of the request, without the port."""
        said = self.headers.get(b"host", "")
        try:
            return (urlsplit(f"//{said}").hostname or "").lower()
        except ValueError:
            return ""

    def is_at(self, host: str) -> bool:
        """Whether a host is the very address that this connection came in at.

        A caller by address, such as a scraper of pods, resolved no name: no foreign DNS led here.
        """
        server = self.scope.get("server")
        ours = _address(server[0]) if server else None
        return ours is not None and ours == _address(host)

    @property
    def bearer(self) -> str | None:
        """The API key of the request, if it has one."""
        said = self.headers.get(b"authorization")
        if said is None:
            return None
        scheme, _, key = said.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise NotAuthenticated("send the key as `Authorization: Bearer flk_...`")
        return key.strip()

    @property
    def credentials(self) -> Credentials:
        """What the request shows of its caller."""
        return Credentials("HTTP", self.bearer, self.peer, self.passed_on)

    @property
    def job_key(self) -> str | None:
        """The key of its job, from a header: the same text as in the field `key`, so in UTF-8."""
        said = self.headers.get(b"idempotency-key")
        try:
            return None if said is None else said.encode("latin-1").decode()
        except UnicodeDecodeError:
            raise RequestRefused(
                MALFORMED, "the Idempotency-Key header is not UTF-8; send it so, or as the field `key`"
            ) from None

    @property
    def peer(self) -> str:
        """The address of the peer."""
        client = self.scope.get("client")
        return client[0] if client else ""


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An IP address; an IPv4 one as such, also where a socket for both kinds reports it mapped."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
