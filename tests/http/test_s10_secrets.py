"""S10, S13: no key, no DSN and no password gets out by an answer, a log line or a metric; labels stay few."""

import logging

import pytest

from faultline.config import redact
from faultline.telemetry import JsonFormatter, LineFormatter
from tests.http.serving import serving


@pytest.fixture
def said(caplog):
    """Every line that was logged, at the lowest level, as both formats write it."""
    caplog.set_level(logging.DEBUG)

    def lines():
        return "\n".join(
            f"{JsonFormatter().format(record)}\n{LineFormatter().format(record)}" for record in caplog.records
        )

    return lines


def test_s10_a_key_is_in_no_answer_and_no_line(service, said):
    key = service.key("admin")
    client = service.client(key)
    answers = [
        client.get("/api/v1/jobs"),
        client.get("/api/v1/acts"),
        client.get(f"/api/v1/jobs?key={key}"),
        client.get(f"/{key}"),
        client.post("/api/v1/jobs", content=b"{", headers={"content-type": "application/json"}),
        client.post("/api/v1/jobs", json={"task": key}),
        client.get("/api/v1/jobs", headers={"host": key}),
        client.get("/api/v1/jobs", headers={"origin": f"http://{key}"}),
        client.get("/metrics"),
        service.client(key + "x").get("/api/v1/jobs"),
    ]

    secret = key.split("_", 2)[2]
    for answer in answers:
        assert secret not in answer.text
        assert secret not in str(answer.headers)
    assert secret not in said()


def test_s10_the_dsn_is_in_no_answer_and_no_line_when_the_server_cannot_reach_it(said):
    dsn = "postgresql://app:hunter2@127.0.0.1:1/shop"
    with pytest.raises(Exception, match="cannot connect") as failed, serving(dsn):
        pass

    assert "hunter2" not in str(failed.value)
    assert "hunter2" not in said()
    assert "hunter2" not in redact(dsn)


def test_s10_nothing_of_a_server_shows_its_dsn(service):
    from faultline.config import Settings
    from faultline.server.config import ServerConfig

    assert "hunter2" not in repr(Settings(dsn="postgresql://app:hunter2@db/shop"))
    assert service.dsn not in repr(ServerConfig())


def test_s13_however_many_queues_are_named_what_is_kept_of_them_stays_small(service, admin):
    """What a client makes up is counted by caller, never by path or queue."""
    for number in range(60):
        admin.get(f"/api/v1/queues/made-up-{number}")
        admin.get(f"/made/up/{number}")

    text = admin.get("/metrics").text
    assert "made-up" not in text
    assert "made/up" not in text
    assert len(text.splitlines()) < 2_000


def test_s13_callers_that_come_and_go_are_forgotten():
    from faultline.server.throttling import token_bucket

    rate = token_bucket.TokenBucket(5.0)
    for number in range(token_bucket.NAMES_MAX + 100):
        rate.take(f"caller-{number}")

    assert len(rate._left) == token_bucket.NAMES_MAX
