"""The TLS context of the HTTP server: 1.2 or newer, AEAD alone; with a client CA, its certificates alone."""

import logging
import ssl
import threading
import time
from datetime import UTC, datetime
from typing import Final

from faultline.errors import ConfigError
from faultline.server.config import Tls
from faultline.server.listener.certificate_validity import CertificateValidity, validity_of
from faultline.telemetry.rate_limited import RateLimited

log = logging.getLogger("faultline.server")

TELL_EVERY_SECONDS: Final = 60.0
TRY_EVERY_SECONDS: Final = 1.0

SUITES: Final = "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!PSK"
"""For TLS 1.2, the same as gRPC: no CBC, and forward secrecy. The suites of 1.3 all have both."""


def server_context(tls: Tls) -> ssl.SSLContext:
    """A context for listening, or ConfigError with the name of the bad file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(SUITES)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(tls.cert, tls.key, password=_no_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise ConfigError(
            f"--tls-cert {tls.cert} and --tls-key {tls.key} do not go together: {error}"
        ) from None
    if tls.client_ca is not None:
        try:
            context.load_verify_locations(tls.client_ca)
        except (ssl.SSLError, OSError) as error:
            raise ConfigError(f"--tls-client-ca {tls.client_ca} holds no certificates: {error}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _no_password() -> str:
    """Without this OpenSSL would ask at the terminal, and a service would hang there."""
    raise ValueError("the key is encrypted; give one that is not, in a file only the server can read")


class Certificates:
    """The files of TLS, checked for changes: renewed ones serve new connections, without a restart.

    Unusable files, such as a certificate whose key has not come yet, are logged; the last usable ones stay
    in force, and the files are tried again. The same is done for a certificate that has expired or is not
    valid yet, as long as the last one is valid.
    """

    def __init__(self, tls: Tls, api: str) -> None:
        self.tls = tls
        self._api = api
        self._read_of = _version(tls)
        self._tried_at = float("-inf")
        self._seldom = RateLimited(TELL_EVERY_SECONDS)
        self._looking = threading.Lock()  # gRPC asks from threads of its own
        self.context = server_context(tls)
        self._validity = _validity(tls)
        if (trouble := _trouble(self._validity)) is not None:
            log.warning("%s: the certificate in %s %s: clients refuse it", api, tls.cert, trouble)

    def renewed(self) -> bool:
        """Whether the files have changed, and can be used; True once for each change."""
        with self._looking:
            try:
                version = _version(self.tls)
                if version == self._read_of or time.monotonic() - self._tried_at < TRY_EVERY_SECONDS:
                    return False
                self._tried_at = time.monotonic()
                context, validity = server_context(self.tls), _validity(self.tls)
                if version != _version(self.tls):
                    return False  # still being written: the next check sees the rest
            except (ConfigError, OSError) as error:
                self._tell(error)
                return False
            trouble = _trouble(validity)
            if trouble is not None and _trouble(self._validity) is None:
                self._tell_kept(trouble)
                return False  # tried again: the one may become valid, and the other expire
            self.context, self._validity, self._read_of = context, validity, version
            self._tell_used(trouble)
            return True

    def _tell_used(self, trouble: str | None) -> None:
        log.info("%s: the certificate in %s is a new one, and is used from now on", self._api, self.tls.cert)
        if trouble is not None:
            log.warning("%s: the new certificate %s: clients refuse it", self._api, trouble)

    def _tell_kept(self, trouble: str) -> None:
        if self._seldom.allows("not valid"):
            log.warning(
                "%s: the new certificate in %s %s; the last one stays while it is valid",
                self._api, self.tls.cert, trouble,
            )  # fmt: skip

    def _tell(self, error: Exception) -> None:
        if self._seldom.allows("cannot be used"):
            log.error("%s: changed files of TLS cannot be used, the last ones stay: %s", self._api, error)


def _validity(tls: Tls) -> CertificateValidity | None:
    return validity_of(tls.cert.read_text(errors="replace"))


def _trouble(validity: CertificateValidity | None) -> str | None:
    """The reason why a certificate is not valid now; None for one with unreadable dates."""
    return None if validity is None else validity.trouble(datetime.now(UTC))


def _version(tls: Tls) -> tuple[tuple[int, ...], ...]:
    """The facts that change with the files; a link to another file changes them too."""
    found = [file.stat() for file in (tls.cert, tls.key, tls.client_ca) if file is not None]
    return tuple((one.st_mtime_ns, one.st_ctime_ns, one.st_size, one.st_ino) for one in found)
