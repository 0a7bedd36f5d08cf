"""The database goes away: a server says so seldom, and says when it is back."""

import json
import logging
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from psycopg_pool import ConnectionPool

from faultline.embedded import EmbeddedServer
from faultline.store import calls
from faultline.store.migrate import migrate
from faultline.store.pool import Store, plain_store
from faultline.telemetry.pool_logs import pool_name

AWAY_SECONDS = 12.0
LINES_MAX = 6
"""One in five seconds, one when it is back, and as many again for a machine that is slow."""


def faultline(*words):
    """A command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "faultline", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


class Served:
    """`faultline server` in a process of its own, and the lines it logs."""

    def __init__(self, dsn):
        made = faultline("--output", "json", "--dsn", dsn, "keys", "create", "test", "--scope", "read")
        self._key = json.loads(made.communicate()[0])["key"]
        words = ["server", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--log", "json", "--dsn", dsn]
        self.process = faultline(*words)
        self.lines = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(json.loads(line))

    def said(self, words):
        return [line["message"] for line in self.lines if words in line.get("message", "")]

    def wait_for(self, words, seconds=60):
        give_up_at = time.monotonic() + seconds
        while not (found := self.said(words)):
            assert time.monotonic() < give_up_at, self.lines
            time.sleep(0.05)
        return found[0]

    def ask(self):
        """Ask what needs the database; answers the status."""
        port = self.wait_for("listening for HTTP").rpartition(":")[2]
        asked = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/v1/queues", headers={"authorization": f"Bearer {self._key}"}
        )
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code

    def end(self):
        self.process.terminate()
        self.process.wait(60)
        self._reading.join(10)
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture
def away():
    """A server whose database can be taken away."""
    with EmbeddedServer.open(fsync=False) as database:
        migrate(database.dsn())
        served = Served(database.dsn())
        try:
            served.wait_for("listening for gRPC")
            yield served, database
        finally:
            served.end()


def test_a_server_tells_an_outage_in_a_line_each_five_seconds_and_when_it_is_over(away):
    served, database = away
    assert served.ask() == 200
    before = len(served.lines)

    database.halt("immediate")
    began = time.monotonic()
    with ThreadPoolExecutor(20) as callers:
        answers = list(callers.map(lambda _: served.ask(), range(20)))
    time.sleep(max(0.0, began + AWAY_SECONDS - time.monotonic()))
    database.resume()
    back = served.wait_for("the database serves again")
    lasted = time.monotonic() - began

    assert set(answers) == {503}
    during = served.lines[before:]
    assert len(during) <= lasted / 5 + 1 + LINES_MAX / 2, during
    assert len(served.said("the database has not served for")) >= 2
    assert "look with `faultline doctor`" in served.said("the database has not served for")[0]
    assert back.endswith("calls refused: 20")
    assert served.ask() == 200


def test_a_pool_of_ours_that_cannot_connect_is_seldom_heard_and_an_applications_own_always(
    caplog, monkeypatch
):
    monkeypatch.setattr(plain_store, "POOL_WAIT_SECONDS", 3.0)
    with EmbeddedServer.open(fsync=False) as database:
        migrate(database.dsn())
        store = Store(database.dsn())
        store.run(calls.health())
        database.halt("immediate")
        with caplog.at_level(logging.WARNING, "psycopg.pool"):
            for _ in range(3):
                with pytest.raises(Exception, match=r"no connection|went away"):
                    store.run(calls.health())
            ours = [record for record in caplog.records if record.name == "psycopg.pool"]
            with ConnectionPool(database.dsn(), min_size=1, open=True, timeout=0.5, name="shop") as theirs:
                time.sleep(2.5)
        store.close()

    assert pool_name() == "faultline"
    seconds = ours[-1].created - ours[0].created
    connecting = [record for record in ours if record.getMessage().startswith("error connecting")]
    assert 1 <= len(connecting) <= seconds / 5 + 1
    assert len(ours) <= 2 * (seconds / 5 + 1)
    assert theirs.name in caplog.text
