"""TLS: with a certificate a server speaks nothing else; with a client CA it refuses a client without one."""

import asyncio
import logging
import os
import shutil
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack

import httpx2
import pytest
import uvloop

from faultline.errors import ConfigError
from faultline.server.config import Tls
from faultline.server.http.connection import revocation_check
from faultline.server.limits import Limits
from faultline.server.listener.revoked_certificates import RevokedCertificates
from faultline.server.listener.tls import Certificates, server_context
from scripts import tools
from tests.grpc.certificates import Authority
from tests.http.serving import serving

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason=tools.why_not("openssl"))


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


def test_with_tls_1_2_it_speaks_with_authenticated_encryption_alone(database, made):
    """CBC suites authenticate before they encrypt, which was attacked again and again; gRPC has none."""
    tls = Tls(cert=made / "server.pem", key=made / "server.key")
    with serving(database, tls=tls) as service:

        def agreed(suite):
            context = ssl.create_default_context(cafile=made / "server.pem")
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers(suite)
            with (
                socket.create_connection(("127.0.0.1", service.address.port)) as sock,
                context.wrap_socket(sock, server_hostname="localhost") as wrapped,
            ):
                return wrapped.cipher()[0]

        for suite in ("ECDHE-ECDSA-AES256-SHA384", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES128-SHA"):
            with pytest.raises((ssl.SSLError, ConnectionError)):
                agreed(suite)
        for suite in (
            "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305",
        ):  # fmt: skip
            assert agreed(suite) == suite


def test_no_suite_is_offered_that_does_not_authenticate_what_it_encrypts(made):
    offered = server_context(Tls(cert=made / "server.pem", key=made / "server.key")).get_ciphers()

    assert offered
    assert [suite["name"] for suite in offered if not suite["aead"] or suite["kea"] == "kx-rsa"] == []


def test_with_a_client_ca_no_client_comes_in_without_a_certificate(database, made):
    tls = Tls(cert=made / "server.pem", key=made / "server.key", client_ca=made / "client.pem")
    with serving(database, tls=tls) as service:
        url = f"https://localhost:{service.address.port}/healthz"
        stranger = ssl.create_default_context(cafile=made / "server.pem")
        known = ssl.create_default_context(cafile=made / "server.pem")
        known.load_cert_chain(made / "client.pem", made / "client.key")

        assert httpx2.get(url, verify=known).status_code == 200
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(url, verify=stranger)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_with_tls_too_a_request_is_answered_whatever_comes_behind_it(database, made, caplog, run):
    """Nor does a client that closes its side, which TLS does not know, leave a word in the log."""
    tls = Tls(cert=made / "server.pem", key=made / "server.key")
    trusting = ssl.create_default_context(cafile=made / "server.pem")
    asked = b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n"
    said = b""
    with serving(database, run=run, tls=tls) as service:
        with connected(service, trusting) as sock:
            sock.sendall(asked + b"GARBAGE\r\n\r\n")
            while more := sock.recv(65_536):
                said += more
        with connected(service, trusting) as sock:
            sock.sendall(asked)
            socket.socket.shutdown(sock, socket.SHUT_WR)
            time.sleep(0.5)

    assert said.startswith(b"HTTP/1.1 200 ")
    assert said.count(b"HTTP/1.1 ") == 1
    assert not [record for record in caplog.records if "eof_received" in record.getMessage()]
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def connected(service, trusting):
    sock = socket.create_connection(("127.0.0.1", service.address.port), timeout=60)
    return trusting.wrap_socket(sock, server_hostname="localhost")


def fingerprint(cert):
    said = ["openssl", "x509", "-noout", "-fingerprint", "-sha256", "-in", cert]
    return subprocess.run(said, check=True, capture_output=True, text=True).stdout


def test_s11_a_certificate_that_is_revoked_opens_nothing_any_more(database, made, tmp_path, monkeypatch):
    """Also over a connection that was open before, and in the middle of a stream."""
    monkeypatch.setattr(revocation_check, "LOOK_EVERY_SECONDS", 0.1)
    listed = tmp_path / "revoked.txt"
    listed.write_text("# none yet\n")
    tls = Tls(
        cert=made / "server.pem", key=made / "server.key", client_ca=made / "client.pem", revoked=listed
    )
    with serving(database, tls=tls) as service:
        base = f"https://localhost:{service.address.port}"
        shown = ssl.create_default_context(cafile=made / "server.pem")
        shown.load_cert_chain(made / "client.pem", made / "client.key")
        with (
            httpx2.Client(base_url=base, verify=shown) as kept,
            httpx2.Client(verify=shown, timeout=60) as listening,
        ):
            assert kept.get("/healthz").status_code == 200
            with listening.stream("GET", f"{base}/api/v1/events") as events:
                lines = events.iter_lines()
                next(lines)
                listed.write_text(fingerprint(made / "client.pem"))
                refused = httpx2.get(f"{base}/healthz", verify=shown)
                assert refused.status_code == 401
                assert refused.json()["code"] == "certificate_revoked"
                with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):  # cut off in mid-stream
                    list(lines)
            with pytest.raises(httpx2.HTTPError):
                kept.get("/healthz").raise_for_status()
        listed.write_text("# none any more\n")
        assert httpx2.get(f"{base}/healthz", verify=shown).status_code == 200


def test_a_list_that_cannot_be_read_any_more_stays_in_force(made, tmp_path, caplog):
    listed = tmp_path / "revoked.txt"
    listed.write_text(fingerprint(made / "client.pem"))
    revoked = RevokedCertificates(listed)
    client, server = certificates(made)

    for spoil in (lambda: listed.write_text("nonsense"), listed.unlink):
        spoil()
        assert (revoked.lists(client), revoked.lists(server)) == (True, False)
    assert caplog.text.count("cannot be read") == 1


def certificates(made):
    return [ssl.PEM_cert_to_DER_cert((made / f"{name}.pem").read_text()) for name in ("client", "server")]


def rewritten(file, text):
    file.write_text(text)


def replaced(file, text):
    (file.parent / "next").write_text(text)
    (file.parent / "next").replace(file)


@pytest.mark.parametrize("change", [rewritten, replaced])
def test_a_changed_list_is_seen_also_with_its_old_length_and_time(made, tmp_path, change):
    """One print for another: lines have one length, and a copy may keep its time."""
    client, server = certificates(made)
    listed = tmp_path / "revoked.txt"
    listed.write_text(fingerprint(made / "server.pem"))
    revoked, before = RevokedCertificates(listed), listed.stat()
    assert (revoked.lists(client), revoked.lists(server)) == (False, True)

    change(listed, fingerprint(made / "client.pem"))
    os.utime(listed, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert listed.stat().st_size == before.st_size
    assert (revoked.lists(client), revoked.lists(server)) == (True, False)


def test_a_changed_list_is_seen_within_a_second_whatever_its_file_tells(made, tmp_path, monkeypatch):
    client, server = certificates(made)
    listed = tmp_path / "revoked.txt"
    listed.write_text(fingerprint(made / "server.pem"))
    monkeypatch.setattr("faultline.server.listener.revoked_certificates._version", lambda file: (0, 0))
    revoked = RevokedCertificates(listed)

    listed.write_text(fingerprint(made / "client.pem"))

    wait_for(lambda: revoked.lists(client))
    assert not revoked.lists(server)


@pytest.mark.parametrize("text", ["", "\n \n"])
def test_an_empty_list_leaves_the_last_one_in_force_and_a_remark_empties_it(made, tmp_path, caplog, text):
    """Empty is what a file is while another is copied over it, and on a full disk it stays so."""
    client, _ = certificates(made)
    listed = tmp_path / "revoked.txt"
    listed.write_text(fingerprint(made / "client.pem"))
    revoked = RevokedCertificates(listed)

    listed.write_text(text)
    assert revoked.lists(client)
    assert revoked.lists(client)
    (told,) = caplog.records
    assert told.levelname == "WARNING"
    assert "is empty, its last list stays in force" in told.getMessage()

    listed.write_text("# none\n")
    assert not revoked.lists(client)


def test_a_list_that_is_empty_at_the_start_is_told(made, tmp_path, caplog):
    (tmp_path / "revoked.txt").write_text("")
    assert not RevokedCertificates(tmp_path / "revoked.txt").lists(certificates(made)[0])
    (told,) = caplog.records
    assert told.levelname == "WARNING"
    assert "is empty" in told.getMessage()


@pytest.mark.parametrize("text", ["-----BEGIN X509 CRL-----\nMIIB\n", "AB:CD", "ff" * 33])
def test_what_is_no_list_of_fingerprints_is_refused_at_the_start(tmp_path, text):
    (tmp_path / "revoked.txt").write_text(text)
    with pytest.raises(ConfigError, match="line 1 is no SHA-256 fingerprint"):
        RevokedCertificates(tmp_path / "revoked.txt")


def test_a_list_of_revoked_certificates_needs_a_client_ca(made, tmp_path):
    (tmp_path / "revoked.txt").write_text("")
    with pytest.raises(ConfigError, match="--tls-client-ca"):
        Tls(cert=made / "server.pem", key=made / "server.key", revoked=tmp_path / "revoked.txt")


def test_files_that_do_not_go_together_are_named(made):
    with pytest.raises(ConfigError, match="do not go together"):
        server_context(Tls(cert=made / "server.pem", key=made / "client.key"))
    with pytest.raises(ConfigError, match="there is no file"):
        Tls(cert=made / "nowhere.pem", key=made / "server.key")


def serial_of(service):
    """The serial number of the certificate that new connections are shown."""
    careless = ssl.create_default_context()
    careless.check_hostname, careless.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", service.address.port), timeout=60) as sock,
        careless.wrap_socket(sock, server_hostname="localhost") as talk,
    ):
        return talk.getpeercert(binary_form=True)


def wait_for(condition):
    give_up_at = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < give_up_at
        time.sleep(0.1)


def test_a_renewed_certificate_is_used_without_a_restart_and_a_bad_one_is_not(
    database, made, tmp_path, caplog
):
    shutil.copy(made / "server.pem", tmp_path / "cert.pem")
    shutil.copy(made / "server.key", tmp_path / "key.pem")
    tls = Tls(cert=tmp_path / "cert.pem", key=tmp_path / "key.pem")
    with serving(database, tls=tls) as service:
        old = serial_of(service)
        trusting = ssl.create_default_context(cafile=made / "server.pem")
        with httpx2.Client(verify=trusting) as kept:
            url = f"https://localhost:{service.address.port}/healthz"
            assert kept.get(url).status_code == 200

            shutil.copy(made / "client.pem", tls.cert)  # its key has not come yet
            wait_for(lambda: "cannot be used" in caplog.text)
            assert serial_of(service) == old
            shutil.copy(made / "client.key", tls.key)
            wait_for(lambda: serial_of(service) != old)

            assert kept.get(url).status_code == 200  # over the connection that was open
        assert serial_of(service) == ssl.PEM_cert_to_DER_cert((made / "client.pem").read_text())


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """Certificates of one authority: good ones, one that has expired and one for later years."""
    office = Authority(tmp_path_factory.mktemp("dated"), "office")
    return {
        "good": office.sign("good"),
        "next": office.sign("next"),
        "expired": office.sign("expired", expired=True),
        "older": office.sign("older", expired=True),
        "early": office.sign("early", early=True),
    }


@pytest.fixture
def put(dated, tmp_path, monkeypatch):
    """Put a certificate where the server has its own, and look at it without delay."""
    monkeypatch.setattr("faultline.server.listener.tls.TRY_EVERY_SECONDS", 0.0)

    def put(name):
        shutil.copy(dated[name].cert, tmp_path / "cert.pem")
        shutil.copy(dated[name].key, tmp_path / "key.pem")
        return Tls(cert=tmp_path / "cert.pem", key=tmp_path / "key.pem")

    return put


def warnings_in(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize(
    ("name", "reason"), [("expired", "expired on 2024-02-01"), ("early", "is not valid before 2090-01-01")]
)
def test_a_certificate_that_is_not_valid_now_does_not_replace_one_that_is(put, caplog, name, reason):
    certificates = Certificates(put("good"), "HTTP")
    kept = certificates.context

    put(name)
    assert not certificates.renewed()
    assert not certificates.renewed()
    assert certificates.context is kept
    (told,) = warnings_in(caplog)
    assert reason in told
    assert "the last one stays" in told

    put("next")
    assert certificates.renewed()
    assert certificates.context is not kept


def test_of_two_that_are_not_valid_the_new_one_is_used_and_told(put, caplog):
    certificates = Certificates(put("older"), "HTTP")
    put("expired")

    assert certificates.renewed()
    at_start, renewed = warnings_in(caplog)
    assert "expired on 2024-02-01" in at_start
    assert "expired on 2024-02-01" in renewed


@pytest.mark.parametrize(("name", "lines"), [("good", 0), ("expired", 1), ("early", 1)])
def test_a_certificate_that_is_not_valid_at_the_start_is_told(put, caplog, name, lines):
    Certificates(put(name), "gRPC")

    assert len(warnings_in(caplog)) == lines


def test_handshakes_that_are_not_finished_count_among_the_connections_of_an_address(database, made):
    tls = Tls(cert=made / "server.pem", key=made / "server.key")
    limits = Limits(connections_per_address=20, handshake_seconds_max=60.0)
    with serving(database, limits, tls=tls) as service, ExitStack() as held:
        where = ("127.0.0.1", service.address.port)
        socks = [held.enter_context(socket.create_connection(where, timeout=20)) for _ in range(60)]

        assert socks[0].recv(1) == b""  # the oldest made room, long before its handshake was late
        url = f"https://localhost:{service.address.port}/healthz"
        trusting = ssl.create_default_context(cafile=made / "server.pem")
        assert httpx2.get(url, verify=trusting, timeout=20).status_code == 200
        assert sum(is_open(sock) for sock in socks) <= 20


def is_open(sock):
    sock.setblocking(False)
    try:
        return sock.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
