"""Revoked client certificates, by their fingerprints: one list for HTTP and gRPC.

Not a CRL: gRPC's library accepts none, and both APIs must use the same list.
"""

import hashlib
import logging
import re
import time
from pathlib import Path
from typing import Final

from faultline.errors import ConfigError
from faultline.telemetry.rate_limited import RateLimited

log = logging.getLogger("faultline.server")

TELL_EVERY_SECONDS: Final = 60.0
READ_EVERY_SECONDS: Final = 1.0
_PRINT: Final = re.compile(r"[0-9a-f]{64}")

EMPTY: Final = "a list that is meant to be empty holds a line with a remark, such as `# none`"


class RevokedCertificates:
    """The list in a file, read again when the file changes.

    If it cannot be read later, or is empty, the last list stays in force, and the log says so: a file is
    empty while another is copied over it, and stays so on a full disk.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seldom = RateLimited(TELL_EVERY_SECONDS)
        self._read_at = time.monotonic()
        try:
            self._read_of, self._text = _version(file), file.read_text()
            self._prints = read_prints(self._text)
        except (OSError, ValueError) as error:
            raise ConfigError(f"--tls-revoked {file}: {error}") from None
        if not self._text.strip():
            log.warning("--tls-revoked %s is empty, so no certificate is refused; %s", file, EMPTY)

    def lists(self, der: bytes) -> bool:
        """Whether this certificate, as DER, is on the list."""
        self._look()
        return hashlib.sha256(der).hexdigest() in self._prints

    def _look(self) -> None:
        try:
            version, now = _version(self._file), time.monotonic()
            # The file's facts may stay the same while its text changes: times are coarse, lines alike.
            if version != self._read_of or now - self._read_at > READ_EVERY_SECONDS:
                self._take(self._file.read_text())
                self._read_of, self._read_at = version, now
        except (OSError, ValueError) as error:
            if self._seldom.allows("cannot be read"):
                log.error(
                    "--tls-revoked %s cannot be read, its last list stays in force: %s", self._file, error
                )

    def _take(self, text: str) -> None:
        if text == self._text:
            return
        if self._prints and not text.strip():
            if self._seldom.allows("is empty"):
                log.warning("--tls-revoked %s is empty, its last list stays in force; %s", self._file, EMPTY)
            return
        self._prints, self._text = read_prints(text), text


def _version(file: Path) -> tuple[int, ...]:
    """The facts that change with the file; another file of the same length and time differs too."""
    found = file.stat()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def read_prints(text: str) -> frozenset[str]:
    """SHA-256 fingerprints, one a line, as `openssl x509 -noout -fingerprint -sha256` prints them.

    >>> len(read_prints("# lost laptops\\nsha256 Fingerprint=" + ":".join(["AB"] * 32)))
    1
    """
    prints = set()
    for number, line in enumerate(text.splitlines(), start=1):
        said = line.partition("#")[0].rpartition("=")[2].replace(":", "").strip().lower()
        if said and not _PRINT.fullmatch(said):
            raise ValueError(
                f"line {number} is no SHA-256 fingerprint; a CRL cannot be taken: list what "
                "`openssl x509 -noout -fingerprint -sha256 -in CERT` prints"
            )
        if said:
            prints.add(said)
    return frozenset(prints)
