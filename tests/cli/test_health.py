"""`health` and `doctor`: what is wrong, and what to do about it."""

import json
import os
import socket
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg
import pytest

from faultline.doctor import checks
from faultline.store import calls
from faultline.store.migrate import SchemaState
from faultline.store.rows import DoctorFacts
from faultline.store.sql_files import LATEST
from tests.support import SECOND, enqueue, worker_named

WELL = DoctorFacts("18.6", "on", "on", "on", 1, datetime.now(UTC), 0.0, 0.5, 0, 0, 0, 0, 1.0, "w", 0, [])


def test_healthy_is_one_line_and_0(on, store):
    store.run(calls.round_(timedelta(seconds=1)))
    store.run(calls.reap())

    well = on("health")

    assert well.exit_code == 0
    assert well.stdout.startswith(f"healthy: schema {LATEST}, last round ")
    assert len(well.stdout.splitlines()) == 1


def test_without_rounds_it_is_unhealthy(on, store, clock):
    assert on("health").exit_code == 1

    store.run(calls.round_(timedelta(seconds=1)))
    store.run(calls.reap())
    clock.advance(minutes=5)
    late = on("health")

    assert late.exit_code == 1
    assert late.stdout.startswith("unhealthy: the last watchdog round was 5m0")
    assert on("health", "--round-within", "10m").exit_code == 0


def test_lag_counts_when_a_bound_is_given_and_a_paused_queue_does_not(on, store, clock):
    enqueue(store)
    clock.advance(minutes=5)
    store.run(calls.round_(timedelta(seconds=1)))
    store.run(calls.reap())

    assert on("health").exit_code == 0
    assert on("health", "--lag-max", "1m").exit_code == 1
    store.run(calls.pause("default"))
    assert on("health", "--lag-max", "1m").exit_code == 0


def test_an_unreachable_database_is_unhealthy_also_in_json(run):
    told = run("health", "--output", "json", "--dsn", "host=127.0.0.1 port=1 password=topsecret")

    assert told.exit_code == 1
    assert "topsecret" not in told.output
    document = json.loads(told.stdout)
    assert (document["healthy"], document["database"]) == (False, False)


def test_doctor_finds_the_test_server_unsafe_and_exits_with_3(on):
    """Tests run with fsync off, which is just what doctor is there to find."""
    told = on("doctor")

    if "fsync               on" not in told.stdout:
        assert told.exit_code == 3
        assert "bad   fsync" in told.stdout
        assert "-> set fsync = on" in told.stdout
    assert "ok    pooler" in told.stdout
    assert "ok    jobs" in told.stdout


def test_doctor_on_a_database_without_our_schema_says_migrate(run, empty_database):
    told = run("doctor", "--dsn", empty_database)

    assert told.exit_code == 3
    assert "run `faultline migrate`" in told.stdout


def test_doctor_finds_rows_that_were_put_out_of_place(on, store, database):
    enqueue(store)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(
            "insert into faultline.later (id, run_at, created_at, lane, max_attempts, task, args, key_seed)"
            " select id, created_at, created_at, lane, max_attempts, task, args, key_seed"
            " from faultline.active"
        )

    told = json.loads(on("doctor", "--output", "json").stdout)

    (jobs,) = [check for check in told["checks"] if check["name"] == "jobs"]
    assert (jobs["grade"], jobs["said"]) == ("bad", "1 jobs stand in two tables at once")


@pytest.mark.parametrize(
    ("check", "grade"),
    [
        (checks.schema(SchemaState(LATEST, (), functions_differ=False)), "ok"),
        (checks.schema(SchemaState(LATEST, (), functions_differ=True)), "bad"),
        (checks.clock(0.1), "ok"),
        (checks.clock(-90.0), "warn"),
        (checks.driver("binary"), "ok"),
        (checks.driver("python"), "warn"),
        (checks.pooler("none", 7, (7, 7)), "ok"),
        (checks.pooler("auto", 7, (7, 7)), "ok"),
        (checks.pooler("auto", 1, (7, 8)), "ok"),
        (checks.pooler("none", 1, (7, 7)), "warn"),
        (checks.pooler("none", 7, (7, 8)), "bad"),
        (checks.pooler("transaction", 1, (7, 8)), "ok"),
        (checks.pooler("transaction", 7, (7, 7)), "warn"),
        (checks.transactions(WELL), "ok"),
        (checks.transactions(WELL._replace(oldest_transaction_seconds=7200.0)), "warn"),
        (checks.watchdog(WELL), "ok"),
        (checks.watchdog(WELL._replace(round_age_seconds=None)), "warn"),
        (checks.watchdog(WELL._replace(round_age_seconds=300.0)), "warn"),
        (checks.watchdog(WELL._replace(chores_age_seconds=300.0)), "bad"),
        (checks.watchdog(WELL._replace(chores_age_seconds=300.0, leader=None)), "bad"),
        (checks.workers(WELL._replace(silent_workers=1)), "warn"),
        (next(checks.rows(WELL._replace(ledger_strays=1))), "bad"),
        (next(checks.durability(WELL._replace(fsync="off"))), "bad"),
    ],
)
def test_each_check_is_graded_and_what_is_not_ok_comes_with_a_remedy(check, grade):
    assert check.grade == grade
    assert bool(check.remedy) is (grade != "ok")


def test_a_worker_by_its_name_or_its_groups_must_be_there(on, store, clock):
    store.run(calls.round_(timedelta(seconds=1)))
    store.run(calls.reap())
    worker = worker_named(store, "web/2")

    assert on("health", "--worker", "web").exit_code == 0
    assert on("health", "--worker", "web/2").exit_code == 0
    unknown = on("health", "--worker", "we")
    assert unknown.exit_code == 1
    assert "the worker we is gone" in unknown.stdout

    clock.advance(minutes=1)
    assert "the worker web is silent" in on("health", "--worker", "web", "--round-within", "10m").stdout
    store.run(calls.worker_stopped(worker))
    assert "the worker web is gone" in on("health", "--worker", "web", "--round-within", "10m").stdout


class Answering(ThreadingHTTPServer):
    """Answers everything with one code and one text, and remembers what it was asked."""

    code = 200
    said = b"the database\n\x1b[31mis away"
    asked: list[str]


@pytest.fixture
def answering():
    asked = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(server.code)
            self.end_headers()
            self.wfile.write(server.said)

        def log_message(self, *_):
            pass

    server = Answering(("127.0.0.1", 0), Answer)
    server.asked = asked
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_server_is_asked_whether_it_is_ready_and_no_database_is_needed(run, answering, monkeypatch):
    url = f"http://127.0.0.1:{answering.server_port}/"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # beside the server no proxy is the question

    well = run("health", "--server", url)
    answering.code = 503
    ill = run("health", "--server", url)

    assert (well.exit_code, well.stdout) == (0, "healthy: the server is ready\n")
    assert answering.asked == ["/readyz", "/readyz"]
    assert ill.exit_code == 1
    assert ill.stdout.startswith("unhealthy: the server answers 503: the database ")
    assert "\x1b" not in ill.stdout
    answering.said = b'{"type": "x", "title": "Not ready", "detail": "run `faultline migrate`"}'
    assert run("health", "--server", url).stdout.endswith("answers 503: run `faultline migrate`\n")


def test_a_server_that_is_not_there_is_unhealthy_and_no_address_is_a_mistake(run):
    gone = run("health", "--server", "http://127.0.0.1:1")

    assert gone.exit_code == 1
    assert gone.stdout.startswith("unhealthy: the server does not answer: ")
    assert run("health", "--server", "localhost:8000").exit_code == 2
    assert run("health", "--server", "http://127.0.0.1:1", "--alive").exit_code == 2


def test_a_port_that_speaks_no_http_is_unhealthy_and_named(run):
    """Such as the server's own for gRPC."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def speak():
            caller, _ = listening.accept()
            with caller:
                caller.recv(1_000)
                caller.sendall(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00")

        speaking = threading.Thread(target=speak, daemon=True)
        speaking.start()
        told = run("health", "--server", f"http://127.0.0.1:{listening.getsockname()[1]}")
        speaking.join()

    assert told.exit_code == 1
    assert told.stdout == (
        "unhealthy: what answers there does not speak HTTP; give the address of the server's --http, "
        "not of its --grpc\n"
    )


def test_a_file_must_be_there_and_young(run, tmp_path, monkeypatch):
    file = tmp_path / "alive"
    assert run("health", "--alive").exit_code == 2  # the command does not name a worker

    monkeypatch.setenv("FAULTLINE_ALIVE_FILE", str(file))
    assert run("health", "--alive").stdout.startswith("unhealthy: there is no ")
    file.touch()
    assert run("health", "--alive").stdout.startswith("healthy: its loop turned ")
    os.utime(file, (1, 1))
    assert "its loop last turned" in run("health", "--alive").stdout
    assert run("health", "--alive", "--alive-within", "40000d").exit_code == 0


@pytest.mark.parametrize("did_them_once", [True, False])
def test_a_leader_that_does_nothing_is_not_healthy(on, store, clock, did_them_once):
    """A worker asks for the lead again and again, and does none of the chores, or never did."""
    store.run(calls.round_(SECOND))
    store.run(calls.reap())
    store.run(calls.lead(7))
    if did_them_once:
        store.run(calls.floors())
    assert on("health").exit_code == 0
    clock.advance(minutes=10)
    store.run(calls.round_(SECOND))
    store.run(calls.reap())
    store.run(calls.lead(7))

    told = on("health")

    assert told.exit_code == 1
    assert "rounds are made, and the leader did its chores 10m" in told.stdout
    assert "rounds are made, but its leader, 7, did the chores 10m" in on("doctor").stdout
