"""What idle workers cost: a small run, to see that its figures are there and that it says what it needs."""

import psycopg
import pytest

from faultline.bench.idle import idle, server_settings
from faultline.errors import FaultlineError


def test_idle_workers_are_measured_and_leave(database, monkeypatch):
    monkeypatch.setattr("faultline.bench.idle.SETTLE_SECONDS", 0.5)
    seen: list[str] = []

    found = idle(database, 2, 1.0, lambda what, done: seen.append(what))

    assert found.document().keys() == {"workers", "seconds", "server_cpu_percent", "commits_per_second"}
    assert found.seconds >= 1
    assert found.server_cpu_percent > 0
    assert set(seen) >= {"idle"}
    with psycopg.connect(database) as conn:
        assert conn.execute("select count(*) from faultline.workers where stopped_at is null").fetchone() == (
            0,
        )


def test_a_server_with_too_few_connections_is_named_before_anything_starts(database):
    with pytest.raises(FaultlineError, match=r"the server takes .* connections, 10000 workers need 60010"):
        idle(database, 10_000, 1.0, lambda what, done: None)

    assert server_settings(50) == {"max_connections": "310"}
