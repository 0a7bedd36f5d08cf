"""What the server tells of itself, and the trace a request brings along."""

import psycopg

from tests.metrics.conftest import samples
from tests.worker.harness import eventually

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def trace_of(database, job_id):
    with psycopg.connect(database) as conn:
        return conn.execute("select trace from faultline.active where id = %s", [job_id]).fetchone()[0]


def submitted(admin, queue, **headers):
    return admin.post("/api/v1/jobs", json={"task": "charge", "queue": queue}, headers=headers).json()["id"]


def test_a_server_tells_the_figures_of_the_whole_database(admin, queue, submit):
    submit()

    due = ("faultline_queue_jobs", frozenset({("queue", queue), ("state", "due")}))
    eventually(lambda: due in samples(admin.get("/metrics").text))  # figures are a few seconds old at most

    answer = admin.get("/metrics")
    assert answer.status_code == 200
    told = samples(answer.text)
    assert told[due] == 1
    assert told["faultline_database_up", frozenset()] == 1


def test_jobs_that_come_one_by_one_are_counted(admin, queue):
    submitted(admin, queue)
    submitted(admin, queue)

    told = samples(admin.get("/metrics").text)

    assert told["faultline_jobs_enqueued_total", frozenset({("queue", queue), ("task", "charge")})] == 2


def test_the_trace_of_a_request_travels_with_its_job(admin, queue, database):
    job = submitted(admin, queue, traceparent=PARENT, tracestate="vendor=1")

    assert trace_of(database, job) == f"{PARENT} vendor=1"


def test_a_header_that_is_no_context_is_none_and_no_error(admin, queue, database):
    job = submitted(admin, queue, traceparent="00-nonsense")

    assert trace_of(database, job) is None
