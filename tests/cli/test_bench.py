"""`faultline bench`: small runs, to see that each figure is there and that nothing stays behind."""

import json

import psycopg


def databases(dsn):
    with psycopg.connect(dsn) as conn:
        return [
            name
            for (name,) in conn.execute(
                "select datname from pg_database where datname like 'faultline_bench%'"
            )
        ]


def test_a_drain_gives_its_figures_and_drops_its_database(run, server):
    told = run("bench", "drain", "--jobs", "300", "--dsn", server.dsn(), "--output", "json")

    assert told.exit_code == 0, told.output
    figures = json.loads(told.stdout)
    for name in ("jobs_per_second", "wal_bytes_per_job", "bulk_enqueued_per_second"):
        assert figures[name] > 0
    assert figures["memory_draining"]["worker_mb"] > 5
    assert databases(server.dsn()) == []


def test_pickup_gives_latencies_and_memory(run, server):
    told = run("bench", "pickup", "--jobs", "20", "--every", "5ms", "--dsn", server.dsn(), "--output", "json")

    assert told.exit_code == 0, told.output
    figures = json.loads(told.stdout)
    assert figures["after_commit_ms"]["p50"] < figures["with_enqueue_ms"]["max"]
    assert figures["memory_idle"]["pacemaker_mb"] > 5
