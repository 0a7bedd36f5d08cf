"""Case S11: plain text, old TLS, a wrong name, an expired, foreign or revoked certificate: all refused."""

import asyncio
import json
import os
import socket
import ssl
import subprocess
import sys
import warnings

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from faultline.errors import ConfigError
from faultline.lab.conformance.scripted_worker import ServerUnderTest
from faultline.server.config import Tls
from faultline.server.grpc import GrpcConfig
from tests.grpc.certificates import Authority
from tests.grpc.conftest import serving

Code = grpc.StatusCode


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    return Authority(folder, "ours"), Authority(folder, "strangers")


def _files(pair, **more):
    return Tls(cert=pair.cert, key=pair.key, **more)


def _speak(target, key, trusted, client=None, name="localhost"):
    """A channel that trusts one authority, and may show a certificate of its own."""
    pair = (None, None) if client is None else (client.key.read_bytes(), client.cert.read_bytes())
    credentials = grpc.ssl_channel_credentials(trusted.pair.cert.read_bytes(), *pair)
    options = [("grpc.ssl_target_name_override", name), ("grpc.use_local_subchannel_pool", 1)]
    return ServerUnderTest(grpc.aio.secure_channel(target, credentials, options), key)


async def _answer(place):
    """What a call comes to: OK, or the status of its refusal."""
    try:
        await place.submit(queue="default")
        return Code.OK
    except grpc.aio.AioRpcError as error:
        return error.code()
    finally:
        await place.channel.close()


async def _probe(place):
    """What asking whether the server is well comes to; it takes no key."""
    try:
        await health_pb2_grpc.HealthStub(place.channel).Check(health_pb2.HealthCheckRequest(), timeout=60)
        return Code.OK
    except grpc.aio.AioRpcError as error:
        return error.code()
    finally:
        await place.channel.close()


def test_s11_a_client_talks_only_to_the_right_certificate(database, office):
    ours, strangers = office
    good, expired = ours.sign("server"), ours.sign("old-server", expired=True)
    elsewhere = ours.sign("elsewhere", "DNS:elsewhere.example")

    async def come_to(server, trusted, name="localhost"):
        async with serving(database, tls=_files(server)) as at:
            return await _answer(_speak(at.target, at.key, trusted, name=name))

    async def main():
        assert await come_to(good, ours) is Code.OK
        assert await come_to(good, strangers) is Code.UNAVAILABLE
        assert await come_to(expired, ours) is Code.UNAVAILABLE
        assert await come_to(elsewhere, ours) is Code.UNAVAILABLE
        assert await come_to(good, ours, name="other.example") is Code.UNAVAILABLE

    asyncio.run(main())


def test_s11_a_client_needs_a_certificate_that_we_signed_and_have_not_revoked(database, office, tmp_path):
    ours, strangers = office
    server, client, foreign = ours.sign("mutual"), ours.sign("worker"), strangers.sign("worker")
    old, revoked = ours.sign("old-worker", expired=True), ours.sign("lost-laptop")
    listed = tmp_path / "revoked.txt"
    listed.write_text("# none yet\n")

    async def main():
        tls = _files(server, client_ca=ours.pair.cert, revoked=listed)
        async with serving(database, tls=tls) as at:
            assert await _answer(_speak(at.target, at.key, ours, client)) is Code.OK
            assert await _answer(_speak(at.target, at.key, ours, revoked)) is Code.OK
            for wrong in (None, foreign, old):
                assert await _answer(_speak(at.target, at.key, ours, wrong)) is Code.UNAVAILABLE
            listed.write_text(f"{revoked.fingerprint}\n")
            assert await _answer(_speak(at.target, at.key, ours, revoked)) is Code.UNAUTHENTICATED
            assert await _answer(_speak(at.target, at.key, ours, client)) is Code.OK
            assert await _probe(_speak(at.target, at.key, ours, revoked)) is Code.UNAUTHENTICATED
            assert await _probe(_speak(at.target, at.key, ours, client)) is Code.OK

    asyncio.run(main())


def test_s11_plain_text_and_old_tls_are_hung_up_on(database, office):
    ours, _ = office
    server = ours.sign("strict")

    async def main():
        async with serving(database, tls=_files(server)) as at:
            plain = ServerUnderTest(grpc.aio.insecure_channel(at.target), at.key)
            assert await _answer(plain) is Code.UNAVAILABLE
            assert await asyncio.to_thread(_handshake, at.server.port, ssl.TLSVersion.TLSv1_2)
            assert not await asyncio.to_thread(_handshake, at.server.port, ssl.TLSVersion.TLSv1_1)

    asyncio.run(main())


def _handshake(port, newest):
    """Whether a handshake with at most this version comes to an end."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.set_alpn_protocols(["h2"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, newest
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw, context.wrap_socket(raw):
            return True
    except (ssl.SSLError, ConnectionError):
        return False


@pytest.fixture
def start(database):
    """Start `faultline server` with JSON lines; what is left of it is killed after the test."""
    started = []

    def start(*words, **environment):
        known = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
        process = subprocess.Popen(
            [sys.executable, "-m", "faultline", "server", "--http", "off", "--grpc", "127.0.0.1:0",
             "--log", "json", *words],
            env={**known, "FAULTLINE_DSN": database, **environment}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        for line in process.stderr:
            if "listening for gRPC" in line:
                return process, int(json.loads(line)["message"].rpartition(":")[2])
        raise AssertionError(f"it ended with {process.wait()}")

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.parametrize(("asked", "speaks"), [({}, False), ({"GRPC_VERBOSITY": "INFO"}, True)])
def test_s11_a_failed_handshake_writes_nothing_into_the_log(start, office, asked, speaks):
    """gRPC's library writes a line for each, past our log; GRPC_VERBOSITY asks for them."""
    server = office[0].sign("logged")
    process, port = start("--tls-cert", str(server.cert), "--tls-key", str(server.key), **asked)

    for _ in range(3):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while raw.recv(1_000):
                pass
    process.terminate()
    said = process.communicate(timeout=60)[1]

    assert ("Handshake failed" in said) == speaks
    if not speaks:
        assert all(json.loads(line) for line in said.splitlines())


def test_files_that_are_not_there_are_named(tmp_path):
    with pytest.raises(ConfigError, match="--tls-cert"):
        GrpcConfig(tls=Tls(cert=tmp_path / "none.pem", key=tmp_path / "none.key"))


def test_renewed_files_are_used_without_a_restart_and_bad_ones_are_not(database, office, tmp_path, caplog):
    ours, strangers = office
    first, next_one = ours.sign("first"), strangers.sign("next")

    def put(pair, *names):
        for name in names:
            (tmp_path / f"{name}.pem").write_bytes(getattr(pair, name).read_bytes())

    async def main():
        put(first, "cert", "key")
        files = Tls(cert=tmp_path / "cert.pem", key=tmp_path / "key.pem")
        async with serving(database, tls=files) as at:
            kept = _speak(at.target, at.key, ours)
            assert await kept.submit(queue="default") > 0
            put(next_one, "cert")  # its key has not come yet
            assert await _answer(_speak(at.target, at.key, ours)) is Code.OK
            assert "cannot be used" in caplog.text
            put(next_one, "key")
            async with asyncio.timeout(30):
                while await _answer(_speak(at.target, at.key, strangers)) is not Code.OK:  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
            assert await _answer(_speak(at.target, at.key, ours)) is Code.UNAVAILABLE
            assert await kept.submit(queue="default") > 0  # over the connection that was open
            await kept.channel.close()

    asyncio.run(main())
