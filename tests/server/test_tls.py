"""TLS: with a certificate it speaks nothing else, and with a client CA it speaks with nobody who has none."""

import shutil
import socket
import ssl
import subprocess

import httpx2
import pytest

from faultline.errors import ConfigError
from faultline.server.config import Tls
from faultline.server.tls import server_context
from tests.api.serving import serving

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="certificates are made with openssl")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A certificate for localhost and one for a client, each signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("server", "client"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem",
             "-subj", f"/CN={name}",
             "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
            check=True, capture_output=True,
        )  # fmt: skip
    return folder


def test_with_tls_it_speaks_nothing_else_and_nothing_old(database, made):
    tls = Tls(cert=made / "server.pem", key=made / "server.key")
    with serving(database, tls=tls) as service:
        trusting = ssl.create_default_context(cafile=made / "server.pem")
        url = f"https://localhost:{service.address.port}/healthz"

        assert httpx2.get(url, verify=trusting).status_code == 200
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(url, verify=ssl.create_default_context())
        old = ssl.create_default_context(cafile=made / "server.pem")
        with pytest.warns(DeprecationWarning, match="deprecated"):
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        with (
            pytest.raises((ssl.SSLError, ConnectionError, ValueError)),
            socket.create_connection(("127.0.0.1", service.address.port)) as sock,
        ):
            old.wrap_socket(sock, server_hostname="localhost")


def test_with_a_client_ca_nobody_comes_in_without_a_certificate(database, made):
    tls = Tls(cert=made / "server.pem", key=made / "server.key", client_ca=made / "client.pem")
    with serving(database, tls=tls) as service:
        url = f"https://localhost:{service.address.port}/healthz"
        stranger = ssl.create_default_context(cafile=made / "server.pem")
        known = ssl.create_default_context(cafile=made / "server.pem")
        known.load_cert_chain(made / "client.pem", made / "client.key")

        assert httpx2.get(url, verify=known).status_code == 200
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(url, verify=stranger)


def test_files_that_do_not_go_together_are_named(made):
    with pytest.raises(ConfigError, match="do not go together"):
        server_context(Tls(cert=made / "server.pem", key=made / "client.key"))
    with pytest.raises(ConfigError, match="there is no file"):
        Tls(cert=made / "nowhere.pem", key=made / "server.key")
