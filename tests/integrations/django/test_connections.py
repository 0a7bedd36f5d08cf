"""Connections of Django around jobs and enqueues, and the fence on a task's own transaction."""

import time

import psycopg
from django.core.management import call_command
from django.db import transaction

from faultline.integrations.django import app
from faultline.integrations.django.task_backend.interface import TaskResultStatus
from tests.integrations.django.shop import tasks
from tests.integrations.django.shop.models import Payment

CHANNEL = "faultline"
OTHERS = """
select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
"""


def work(**options):
    call_command("faultline_worker", until_empty=True, verbosity=0, **options)


def sessions(dsn):
    with psycopg.connect(dsn) as conn:
        return conn.execute(OTHERS).fetchone()[0]


def test_a_task_that_lost_its_job_commits_nothing(project):
    result = tasks.pay_and_be_cancelled.enqueue(7)

    work()
    result.refresh()

    assert result.status == TaskResultStatus.FAILED
    assert Payment.objects.count() == 0


def test_a_broken_connection_is_not_kept_for_the_next_task(project):
    broken = tasks.break_connection.enqueue()
    paid = tasks.pay.enqueue(7)

    work(concurrency=1, threads=1)

    assert tasks.break_connection.get_result(broken.id).status == TaskResultStatus.FAILED
    assert tasks.pay.get_result(paid.id).status == TaskResultStatus.SUCCESSFUL


def test_a_worker_leaves_no_session_behind(project):
    before = sessions(project)
    for order in range(10):
        tasks.pay.enqueue(order)
        tasks.pay_async.enqueue(order)
    work()

    assert Payment.objects.count() == 20
    assert sessions(project) == before


def test_workers_are_woken_after_the_commit(project):
    with psycopg.connect(project, autocommit=True) as conn:
        conn.execute(f"listen {CHANNEL}")
        with transaction.atomic():
            tasks.add.using(queue_name="mail").enqueue(1)
            assert list(conn.notifies(timeout=0.2)) == []
        (told,) = conn.notifies(timeout=10, stop_after=1)

    assert told.payload == "mail"


def test_a_delayed_wake_up_leaves_no_session_behind(project):
    """Of a burst the first goes at once, and one more a moment later, from a thread of its own."""
    before = sessions(project)
    with psycopg.connect(project, autocommit=True) as conn:
        conn.execute(f"listen {CHANNEL}")
        for _ in range(10):
            app._sender.hint("mail")
        told = list(conn.notifies(timeout=20, stop_after=2))

    assert len(told) >= 2
    assert {each.payload for each in told} == {"mail"}
    give_up_at = time.monotonic() + 20
    while sessions(project) != before:
        assert time.monotonic() < give_up_at
        time.sleep(0.05)
