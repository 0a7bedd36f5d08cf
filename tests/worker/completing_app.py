"""Handlers that complete their job and then die, or fail: each in a process of its own."""

import os

import psycopg

from faultline import Faultline, Job

app = Faultline()

INSERT = "insert into effects (job_id, token, said) values (%s, %s, 'written')"


@app.task(run="process")
def late(job: Job) -> None:
    with job.complete():
        pass
    raise ValueError("too late")


@app.task(run="process")
def commit_and_die(job: Job, dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute(INSERT, [job.id, job.token])
        job.complete_in(conn)
    os._exit(7)


@app.task(run="process")
def die_uncommitted(job: Job, dsn: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute(INSERT, [job.id, job.token])
        job.complete_in(conn)
        os._exit(7)
