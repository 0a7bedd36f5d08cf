"""A server that is told to stop finishes its open calls, tells the waiting clients, and exits with 0."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import grpc
import httpx2
import pytest
from click.testing import CliRunner

from faultline.cli.root import root
from faultline.lab.conformance.scripted_worker import ServerUnderTest
from faultline.store import calls
from faultline.store.pool import AsyncStore
from tests.grpc.conftest import a_server, make_key
from tests.support import enqueue


@pytest.fixture
def start(database):
    """Start `faultline server`; what is left of it is killed after the test."""
    started = []

    def start(*words):
        process = subprocess.Popen(
            [sys.executable, "-m", "faultline", "server", "--http", "127.0.0.1:0", "--trust-loopback",
             "--log", "lines", *words],
            env={**os.environ, "FAULTLINE_DSN": database}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        for line in process.stderr:
            if "listening for HTTP" in line:
                return process, line.split()[-1]
        raise AssertionError(f"it ended with {process.wait()}")

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def until_in_hand(address, *kinds):
    """Return when the server says that it serves a request of each kind."""
    wanted = [re.compile(rf'faultline_server_in_hand{{kind="{kind}",protocol="http"}} 1') for kind in kinds]
    until = time.monotonic() + 60
    while not all(one.search(told := httpx2.get(f"http://{address}/metrics").text) for one in wanted):
        assert time.monotonic() < until, told
        time.sleep(0.05)


def test_the_option_drills_is_what_serves_their_routes(start):
    addresses = [start(*words)[1] for words in ((), ("--drills",))]

    assert [httpx2.get(f"http://{address}/api/v1/drills").status_code for address in addresses] == [404, 200]


def test_sigterm_ends_long_polls_and_streams_at_once_and_then_the_server(start, store):
    process, address = start("--grace", "20s")
    job_id = enqueue(store)
    answers = {}

    def wait():
        answers["wait"] = httpx2.get(f"http://{address}/api/v1/jobs/{job_id}/wait?seconds=60", timeout=60)

    def listen():
        answers["events"] = httpx2.get(f"http://{address}/api/v1/events", timeout=60)

    threads = [threading.Thread(target=wait), threading.Thread(target=listen)]
    for thread in threads:
        thread.start()
    until_in_hand(address, "wait", "stream")
    process.send_signal(signal.SIGTERM)
    for thread in threads:
        thread.join(60)

    assert process.wait(60) == 0
    assert (answers["wait"].status_code, answers["wait"].json()["state"]) == (200, "queued")
    assert "event: bye" in answers["events"].text


def test_its_watchdog_makes_rounds(start, store):
    start()
    until = time.monotonic() + 20
    while store.run(calls.health())[0] is None:
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--tls-cert", "nowhere.pem", "--tls-key", "nowhere.key"], "there is no file"),
        (["--tls-cert", "nowhere.pem"], "go together"),
        (["--http", "off"], "neither"),
        (["--http", "a:b"], "not an address"),
    ],
)
def test_a_server_that_cannot_start_says_why_in_one_line(database, words, reason):
    done = CliRunner().invoke(root, ["--dsn", database, "server", *words], prog_name="faultline")

    assert done.exit_code == 2
    assert reason in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_told_twice_it_waits_for_no_worker_either(database):
    async def main():
        store = AsyncStore(database)
        key = await make_key(store, "work")
        async with (
            a_server(database, grace=timedelta(minutes=10)) as server,
            grpc.aio.insecure_channel(str(server.grpc)) as channel,
            ServerUnderTest(channel, key, "default").session() as talk,
        ):
            server.stop()
            assert (await talk.hear("notice")).notice.WhichOneof("news") == "drain"
            server.stop()
            await talk.ended()
        await store.close()

    asyncio.run(asyncio.wait_for(main(), 30))
