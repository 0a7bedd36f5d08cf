"""The address of a server and its credentials: one address or several, an API key, the files of TLS."""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from faultline.errors import ConfigError

PORT: Final = 8001
"""The default port of a server for gRPC."""

KEY_CHARS_MAX: Final = 512

_PLAIN: Final = ("", "grpc")
_SECURE: Final = ("grpcs",)
_HTTP: Final = {"http": "grpc", "https": "grpcs"}
_URL: Final = re.compile(r"(?:([a-z]+)://)?(\[[0-9a-fA-F:.]+\]|[^\[\]/:@?#\s]+)(?::([0-9]{1,5}))?/?")
_KEY: Final = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """The way to reach a server, or the replicas of one; the key stays out of the repr, and so out of logs.

    >>> address = ServerAddress.read("grpcs://queue.example, grpcs://spare.example:7000", "flk_secret")
    >>> address.targets, address.secure, "flk_secret" in repr(address)
    (('queue.example:8001', 'spare.example:7000'), True, False)
    """

    targets: tuple[str, ...]
    secure: bool = False
    key: str | None = field(default=None, repr=False)
    ca: str | None = None
    """The file of the CA that signed the server's certificate; without it, those that the system trusts."""
    cert: str | None = None
    cert_key: str | None = None

    @classmethod
    def read(
        cls,
        server: str,
        key: str | None = None,
        *,
        ca: str | None = None,
        cert: str | None = None,
        cert_key: str | None = None,
    ) -> "ServerAddress":
        """An address as typed: URLs with commas between them, each of them of the same kind."""
        urls = [_read_url(word.strip()) for word in server.split(",") if word.strip()]
        if not urls:
            raise ConfigError("no server was named; give its URL, such as grpc://localhost:8001")
        if len({secure for secure, _ in urls}) > 1:
            raise ConfigError(
                "either all servers are spoken to with TLS or none of them; use one kind of URL"
            )
        secure = urls[0][0]
        if not secure and (ca or cert or cert_key):
            raise ConfigError("certificates are of use with TLS only; write the server's URL as grpcs://...")
        if (cert is None) != (cert_key is None):
            raise ConfigError("a client's certificate and its private key are given together, or neither")
        return cls(
            targets=tuple(target for _, target in urls), secure=secure,
            key=None if key is None else check_key(key), ca=ca, cert=cert, cert_key=cert_key,
        )  # fmt: skip

    @classmethod
    def find(
        cls,
        server: str | None = None,
        key_file: Path | None = None,
        *,
        ca: str | None = None,
        cert: str | None = None,
        cert_key: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> "ServerAddress | None":
        """Arguments first, then FAULTLINE_SERVER, FAULTLINE_API_KEY and the like; None without a server.

        >>> ServerAddress.find(environment={"FAULTLINE_SERVER": "queue.example"}).targets
        ('queue.example:8001',)
        """
        server = server or environment.get("FAULTLINE_SERVER")
        if not server:
            return None
        file = key_file or environment.get("FAULTLINE_API_KEY_FILE")
        key = read_key_file(Path(file)) if file else environment.get("FAULTLINE_API_KEY") or None
        return cls.read(
            server,
            key,
            ca=ca or environment.get("FAULTLINE_TLS_CA") or None,
            cert=cert or environment.get("FAULTLINE_TLS_CERT") or None,
            cert_key=cert_key or environment.get("FAULTLINE_TLS_KEY") or None,
        )

    def told(self) -> dict[str, Any]:
        """All of it as JSON, for a pipe to a process of ours."""
        return asdict(self)

    @classmethod
    def heard(cls, told: dict[str, Any]) -> "ServerAddress":
        """The address from that JSON.

        >>> address = ServerAddress.read("localhost:7000", "flk_secret")
        >>> ServerAddress.heard(address.told()) == address
        True
        """
        return cls(**{**told, "targets": tuple(told["targets"])})


def _read_url(url: str) -> tuple[bool, str]:
    # The error does not quote the text, which may hold a password.
    if "@" in url:
        raise ConfigError(
            "a server's URL holds no name and no key; give the key in FAULTLINE_API_KEY or a file"
        )
    found = _URL.fullmatch(url)
    scheme = (found[1] or "") if found else ""
    if found is not None and scheme in _HTTP:
        raise ConfigError(
            f"{url[:100]!a} is an address for HTTP; a worker speaks gRPC to the address that the server was "
            f"given as --grpc: write {_HTTP[scheme]}://{found[2]}:{PORT}, or the port that it has"
        )
    if found is None or scheme not in (*_PLAIN, *_SECURE) or not 0 < int(found[3] or PORT) < 65536:
        raise ConfigError(
            f"{url[:100]!a} is not a server's URL; write grpc://host:port, or grpcs://host:port for TLS"
        )
    return scheme in _SECURE, f"{found[2]}:{found[3] or PORT}"


def read_key_file(path: Path) -> str:
    """An API key that lies alone in a file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the API key cannot be read from {path}: {error}") from error
    return check_key(text.strip())


def check_key(key: str) -> str:
    """A key that a header can carry; the server decides whether it is valid."""
    if not _KEY.fullmatch(key) or len(key) > KEY_CHARS_MAX:
        raise ConfigError(
            "an API key is one word of plain letters, such as flk_...; check where it was copied from"
        )
    return key
