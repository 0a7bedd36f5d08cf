"""The dates of a certificate, read from its file: `ssl` reports them only for a peer's certificate."""

import re
import ssl
from datetime import UTC, datetime
from typing import Final, NamedTuple

_FIRST: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)

_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17


class CertificateValidity(NamedTuple):
    """The begin and the end of the time in which clients accept a certificate."""

    since: datetime
    until: datetime

    def trouble(self, now: datetime) -> str | None:
        """The reason why it is not valid now, if there is one.

        >>> of_2024 = CertificateValidity(datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC))
        >>> of_2024.trouble(datetime(2026, 1, 1, tzinfo=UTC))
        'expired on 2025-01-01 00:00 UTC'
        >>> of_2024.trouble(datetime(2024, 6, 1, tzinfo=UTC)) is None
        True
        """
        if now < self.since:
            return f"is not valid before {self.since:%Y-%m-%d %H:%M} UTC"
        return f"expired on {self.until:%Y-%m-%d %H:%M} UTC" if now > self.until else None


def validity_of(pem: str) -> CertificateValidity | None:
    """The dates of the first certificate in a file, the server's own; None for an unknown form."""
    first = _FIRST.search(pem)
    if first is None:
        return None
    try:
        return _validity(ssl.PEM_cert_to_DER_cert(first[0]))
    except (ValueError, IndexError):
        return None


def _validity(der: bytes) -> CertificateValidity:
    """Certificate > its signed part > (version), serial, algorithm, issuer, validity (RFC 5280, 4.1)."""
    _, certificate, _ = _element(der)
    _, signed, _ = _element(certificate)
    tag, _, rest = _element(signed)
    for _ in range(3 if tag == _VERSION else 2):
        _, _, rest = _element(rest)
    _, validity, _ = _element(rest)
    tag, since, rest = _element(validity)
    tag_until, until, _ = _element(rest)
    return CertificateValidity(_moment(tag, since), _moment(tag_until, until))


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """The first element's tag and content, and the rest."""
    start, length = 2, der[1]
    if length > 0x7F:
        start += length & 0x7F
        length = int.from_bytes(der[2:start])
    return der[0], der[start : start + length], der[start + length :]


def _moment(tag: int, content: bytes) -> datetime:
    said = content.decode("ascii")
    if tag == _UTC_TIME:  # with two digits for the year, from 1950 to 2049
        said = ("20" if said < "5" else "19") + said
    return datetime.strptime(said, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
