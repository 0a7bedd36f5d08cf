"""The TLS context of the HTTP server: 1.2 or newer; with a client CA, nobody without a certificate of it."""

import ssl

from faultline.errors import ConfigError
from faultline.server.config import Tls


def server_context(tls: Tls) -> ssl.SSLContext:
    """A context for listening, or ConfigError with the file that is wrong."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
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
