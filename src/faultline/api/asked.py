"""A request's head, read once: what the gate looks at before anything else happens."""

import re
import secrets
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from faultline.api.problems import KEY_IN_URL, MALFORMED, Refused
from faultline.errors import NotAuthenticated
from faultline.server.config import FORWARDED

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
ONCE: Final = frozenset({b"host", b"authorization", b"idempotency-key", b"content-type", b"origin"})
"""Headers of which a second one would be a trick: this end reads the one, a proxy has read the other."""

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_A_KEY: Final = re.compile(rb"flk_|(?:^|&)(?:api_?key|access_token|authorization)=", re.IGNORECASE)


class Asked:
    """What a request says of itself."""

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
        """Whether somebody has passed it on: then the address it comes from is not the client's."""
        self.id = ""
        for name, value in scope["headers"]:
            if name in FORWARDED:
                self.passed_on = True
            elif name not in self.headers:
                self.headers[name] = value.decode("latin-1")
            elif name in ONCE:
                self.headers[name] = "\0"  # refused by `check`: an error cannot be answered from here
        given = self.headers.get(b"x-request-id", "")
        self.id = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)

    @property
    def is_safe(self) -> bool:
        """Whether it only reads."""
        return self.method in SAFE

    @property
    def has_body(self) -> bool:
        return (
            self.headers.get(b"content-length", "0").strip("0") != "" or b"transfer-encoding" in self.headers
        )

    @property
    def length(self) -> int | None:
        """How long it says its body is."""
        said = self.headers.get(b"content-length", "")
        return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else None

    def check(self) -> None:
        """Refuse what no client of good will sends."""
        if any("\0" in self.headers.get(name, "") for name in ONCE):
            raise Refused(MALFORMED, "a header that is sent once was sent twice")
        query: bytes = self.scope.get("query_string", b"")
        if (query and _A_KEY.search(query)) or "flk_" in self.scope["path"]:
            raise Refused(KEY_IN_URL)

    @property
    def host(self) -> str:
        """The name it calls us by, without the port."""
        said = self.headers.get(b"host", "")
        try:
            return (urlsplit(f"//{said}").hostname or "").lower()
        except ValueError:
            return ""

    def is_at(self, host: str) -> bool:
        """Whether a host is the very address that this connection came in at.

        Whoever calls us by it, such as a scraper of pods, resolved no name: nobody's DNS led here.
        """
        server = self.scope.get("server")
        ours = _address(server[0]) if server else None
        return ours is not None and ours == _address(host)

    @property
    def bearer(self) -> str | None:
        """The API key it shows, if it shows one."""
        said = self.headers.get(b"authorization")
        if said is None:
            return None
        scheme, _, key = said.partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise NotAuthenticated("send the key as `Authorization: Bearer flk_...`")
        return key.strip()

    @property
    def job_key(self) -> str | None:
        """The key of its job, if a header names one: the same text as in the field `key`, so in UTF-8."""
        said = self.headers.get(b"idempotency-key")
        try:
            return None if said is None else said.encode("latin-1").decode()
        except UnicodeDecodeError:
            raise Refused(
                MALFORMED, "the Idempotency-Key header is not UTF-8; send it so, or as the field `key`"
            ) from None

    @property
    def peer(self) -> str:
        """The address at the other end of the connection."""
        client = self.scope.get("client")
        return client[0] if client else ""


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """An address of either kind; one of IPv4 as such, also where a socket for both kinds tells it mapped."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
