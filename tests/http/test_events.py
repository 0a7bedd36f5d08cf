"""Live changes: one look at the ledger for all, nothing lost, nothing shown to those who may not see it."""

import asyncio
import contextlib
import threading
import time
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from faultline.server.auth import Authenticator
from faultline.server.auth.caller import LOOPBACK
from faultline.server.http import create_app
from faultline.server.http.event_feed import CutOff, EventFeed
from faultline.server.limits import Limits
from faultline.store import calls
from faultline.store.pool import AsyncStore
from tests.http.serving import code_of, serving
from tests.support import claim_many, claim_one, new_job
from tests.worker.harness import eventually

EVENTS = "/api/v1/events"


@pytest.fixture(scope="module")
def service(database):
    with serving(database, Limits(comment_seconds=0.3, subscribers_max=5)) as running:
        yield running


class Listener:
    """Reads a stream in a thread of its own."""

    def __init__(self, client, **headers):
        self.lines = []
        self._client, self._headers = client, headers
        self._thread = threading.Thread(target=self._read)
        self._over = threading.Event()

    def __enter__(self):
        self._thread.start()
        self.wait_for(": faultline")
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join(60)
        assert not self._thread.is_alive()

    def _read(self):
        with self._client.stream("GET", EVENTS, headers=self._headers) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            for line in answer.iter_lines():
                self.lines.append(line)
                if self._over.is_set():
                    return

    def ended(self):
        """Wait until the server has ended it."""
        self._thread.join(60)
        assert not self._thread.is_alive()

    def wait_for(self, text, seconds=20):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if found := [line for line in list(self.lines) if text in line]:
                return found[0]
            time.sleep(0.02)
        raise AssertionError(f"{text!r} did not come; got {self.lines}")


def ended_job(store, submit, queue):
    job_id = submit()
    store.run(calls.complete(claim_one(store, queues=(queue,)), None))
    return job_id


def test_a_lease_that_ends_is_told_to_all_listeners(service, admin, submit, store, queue):
    with Listener(service.client(service.key("read"))) as one, Listener(admin) as other:
        one.wait_for(": nothing new")  # the first look is behind it
        job_id = ended_job(store, submit, queue)

        for listener in (one, other):
            assert '"outcome":"succeeded"' in listener.wait_for(f'"job_id":{job_id},')


def test_a_client_that_comes_back_is_told_what_happened_meanwhile(service, admin, submit, store, queue):
    with Listener(admin) as first:
        first.wait_for(": nothing new")
        seen = ended_job(store, submit, queue)
        first.wait_for(f'"job_id":{seen},')
        last_id = [line for line in first.lines if line.startswith("id: ")][-1].removeprefix("id: ")
    missed = ended_job(store, submit, queue)

    with Listener(admin, **{"last-event-id": last_id}) as again:
        again.wait_for(f'"job_id":{missed},')


def id_of_the_last(store, job_id):
    """The id of the event that told of the job's end."""
    return str(int(store.run(calls.history(job_id))[-1].settled_at.timestamp() * 1_000_000))


@pytest.mark.parametrize("bound", [True, False])
def test_a_client_that_missed_more_than_is_held_is_told_of_the_gap(database, submit, store, queue, bound):
    """Events of other queues may have pushed those of a key's own queue out."""
    seen = ended_job(store, submit, queue)
    ended_job(store, submit, queue)
    for _ in range(3):
        submit(queue="elsewhere")
        store.run(calls.complete(claim_one(store, queues=("elsewhere",)), None))

    with serving(database, Limits(comment_seconds=0.3, events_buffered_max=3)) as running:
        client = running.client(running.key("read", queues=[queue] if bound else None))
        with Listener(client, **{"last-event-id": id_of_the_last(store, seen)}) as again:
            again.wait_for(": nothing new")
            assert again.lines.count("event: gap") == 1


def test_a_client_that_missed_less_than_is_held_is_told_of_no_gap(service, submit, store, queue):
    seen, missed = ended_job(store, submit, queue), ended_job(store, submit, queue)
    client = service.client(service.key("read", queues=[queue]))

    with Listener(client, **{"last-event-id": id_of_the_last(store, seen)}) as again:
        again.wait_for(f'"job_id":{missed},')
        again.wait_for(": nothing new")
        assert "event: gap" not in again.lines


def test_an_event_that_is_committed_behind_the_newest_is_told_as_a_gap(
    database, submit, store, queue, monkeypatch
):
    monkeypatch.setattr("faultline.server.http.event_feed.GAP_EVERY", 0.1)
    submit()
    late = claim_one(store, queues=(queue,))
    few = Limits(comment_seconds=0.3, events_buffered_max=2)
    with (
        serving(database, few) as running,
        psycopg.connect(database) as conn,
        Listener(running.client(running.key("read"))) as listener,
    ):
        listener.wait_for(": nothing new")  # the first look is behind it
        store.run_in(conn, calls.complete(late, None))
        for _ in range(2):
            listener.wait_for(f'"job_id":{ended_job(store, submit, queue)},')
        before = len(listener.lines)
        conn.commit()

        eventually(lambda: "event: gap" in listener.lines[before:])
        assert not any(f'"job_id":{late.job_id},' in line for line in listener.lines)


def test_gaps_of_looks_that_are_cut_off_are_told_each_few_seconds_and_none_is_forgotten():
    looks = CutOff()
    told = [
        (cut_off, looks.is_to_be_told(cut_off, now))
        for now, cut_off in enumerate(
            [False, True, True, True, False, False, False, False, False, False, False, False, True]
        )
    ]

    assert [now for now, (_, is_told) in enumerate(told) if is_told] == [1, 6, 12]


def test_a_key_for_one_queue_hears_of_no_other(service, submit, store, queue):
    client = service.client(service.key("read", queues=[queue]))
    with Listener(client) as listener:
        listener.wait_for(": nothing new")
        other = submit(queue="elsewhere")
        store.run(calls.complete(claim_one(store, queues=("elsewhere",)), None))
        mine = ended_job(store, submit, queue)

        listener.wait_for(f'"job_id":{mine},')
        assert not any(f'"job_id":{other},' in line for line in listener.lines)


def test_more_listeners_than_there_is_room_for_are_refused(service, admin):
    listeners = [Listener(service.client(service.key("read"))) for _ in range(5)]
    for listener in listeners:
        listener.__enter__()

    answer = admin.get(EVENTS)

    for listener in listeners:
        listener.__exit__()
    assert (answer.status_code, code_of(answer)) == (503, "overloaded")


def test_the_ledgers_newest_entries_are_found_from_its_end(store, queue):
    """In every range, whatever the id of the job: a job of long ago may end today."""
    store.run(calls.enqueue_many([new_job(queue=queue) for _ in range(500)]))
    old = datetime.now(UTC) + timedelta(hours=1)
    for _ in range(5):
        leases = claim_many(store, 100, queues=(queue,))
        store.run(calls.complete_many(leases, [None] * len(leases)))

    everything = store.run(calls.changes(datetime.now(UTC) - timedelta(hours=1)))
    assert len([entry for entry in everything if entry.queue == queue]) == 500
    moments = [entry.settled_at for entry in everything]
    assert moments == sorted(moments, reverse=True)
    assert store.run(calls.changes(old)) == []
    assert len(store.run(calls.changes(moments[-1], most=10))) == 10


def test_s2_a_stream_ends_with_its_key(service, store, monkeypatch):
    monkeypatch.setattr("faultline.server.auth.authenticator.CACHE_SECONDS_MAX", 0.1)
    key = service.key("read")
    with Listener(service.client(key)) as listener:
        listener.wait_for(": nothing new")
        store.run(calls.revoke_key(key.split("_")[1]))

        assert "opens nothing" in listener.wait_for("data: ")
        listener.ended()


def test_a_client_that_leaves_before_the_first_event_leaves_room(database):
    """Otherwise a hundred of them leave no room for other clients."""

    async def come_and_go():
        store = AsyncStore(database)
        app = create_app(store, Authenticator(store, trust_loopback=True))
        scope = {
            "type": "http", "method": "GET", "path": EVENTS, "raw_path": EVENTS.encode(), "query_string": b"",
            "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "http_version": "1.1",
            "scheme": "http", "server": ("127.0.0.1", 80), "asgi": {"version": "3.0", "spec_version": "2.4"},
        }  # fmt: skip

        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            raise OSError("the client has gone")

        for version in ("2.3", "2.4"):
            with contextlib.suppress(Exception):
                await app({**scope, "asgi": {"version": "3.0", "spec_version": version}}, receive, send)
        left = set(app.state.context.feed._subscribers)
        await store.close()
        return left

    assert asyncio.run(come_and_go()) == set()


def test_a_client_that_comes_while_the_server_stops_is_sent_on():
    async def come():
        feed = EventFeed(None, 10)
        feed.end()
        subscriber = feed.subscribe(LOOPBACK)
        feed.leave(subscriber)
        return subscriber.over

    assert asyncio.run(come())
