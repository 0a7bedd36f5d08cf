"""A server whose database turned read-only goes on with the one that takes writes; clients see nothing."""

import time

import pytest

from tests.http.serving import serving
from tests.support_turning import PATIENCE_SECONDS, a_pair


@pytest.fixture(scope="module")
def pair():
    with a_pair() as pair:
        pair.new.ask("select setval('faultline.places', 1000000)")  # no id is on both
        pair.new.ask("insert into faultline.queues (name) values ('default') returning name")
        yield pair


def share_keys(pair):
    """As replication would: what opens the one opens the other."""
    (keys,) = pair.old.ask("select json_agg(key)::text from faultline.api_keys as key")
    pair.new.ask(
        "with made as (insert into faultline.api_keys"
        " select * from json_populate_recordset(null::faultline.api_keys, %s) on conflict do nothing"
        " returning id) select count(*) from made", keys,
    )  # fmt: skip


def test_a_submit_and_a_cancel_are_carried_out_where_writes_are_taken(pair):
    with serving(pair.dsn) as service:
        client = service.client(service.key("admin", name="old"))
        share_keys(pair)
        assert client.post("/api/v1/jobs", json={"task": "charge"}).status_code == 201
        pair.old.take_no_writes()

        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            answer = client.post("/api/v1/jobs", json={"task": "charge"})
            assert answer.status_code == 201, answer.text
            if int(answer.json()["id"]) > 1000000:
                break
            assert time.monotonic() < until
        cancelled = client.post(f"/api/v1/jobs/{answer.json()['id']}/cancel", json={})
        assert cancelled.status_code == 200, cancelled.text


def test_an_operators_verb_is_carried_out_where_writes_are_taken(pair):
    """The first call that meets the server that turned is one in a transaction of its own."""
    pair.old.take_writes()
    with serving(pair.dsn) as service:
        client = service.client(service.key("admin", name="second"))
        share_keys(pair)
        assert client.post("/api/v1/queues/default/pause", json={"new": True}).status_code == 200
        pair.old.take_no_writes()

        until = time.monotonic() + PATIENCE_SECONDS
        while pair.new.ask("select paused_at is null from faultline.queues where name = 'default'") == (
            True,
        ):
            answer = client.post("/api/v1/queues/default/pause", json={"new": True})
            assert answer.status_code == 200, answer.text
            assert time.monotonic() < until
