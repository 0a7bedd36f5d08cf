"""Client certificates that open nothing any more, by their fingerprints: one list for HTTP and gRPC.

Not a CRL: gRPC's library cannot be given one, and two doors with two lists would be one list too many.
"""

import hashlib
import logging
import re
import time
from pathlib import Path
from typing import Final

from faultline.errors import ConfigError

log = logging.getLogger("faultline.server")

TELL_EVERY_SECONDS: Final = 60.0
_PRINT: Final = re.compile(r"[0-9a-f]{64}")


class Revoked:
    """The list in a file, read again when that changes.

    If it cannot be read later on, the last list that could be stays in force, and the log says so.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._told_at = float("-inf")
        try:
            self._read_of, self._prints = _version(file), read_prints(file.read_text())
        except (OSError, ValueError) as error:
            raise ConfigError(f"--tls-revoked {file}: {error}") from None

    def lists(self, der: bytes) -> bool:
        """Whether this certificate, as DER, is on the list."""
        self._look()
        return hashlib.sha256(der).hexdigest() in self._prints

    def _look(self) -> None:
        try:
            version = _version(self._file)
            if version != self._read_of:
                self._prints = read_prints(self._file.read_text())
                self._read_of = version
        except (OSError, ValueError) as error:
            if time.monotonic() - self._told_at > TELL_EVERY_SECONDS:
                self._told_at = time.monotonic()
                log.error(
                    "--tls-revoked %s cannot be read, its last list stays in force: %s", self._file, error
                )


def _version(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_mtime_ns, found.st_size


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
