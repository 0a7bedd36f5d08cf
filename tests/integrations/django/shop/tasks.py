"""The tasks that the tests enqueue."""

import os
import signal
import time
from datetime import timedelta
from typing import Any

import psycopg
from django.db import connection

from faultline import Dead, Snooze
from faultline.integrations.django.conf import dsn_of
from faultline.integrations.django.task_backend.interface import task
from tests.integrations.django.shop.models import Order, Payment


class Declined(Exception):
    """An error of the project's own."""


@task
def add(a: int, b: int = 0) -> int:
    return a + b


@task
async def add_async(a: int, b: int = 0) -> int:
    return a + b


@task(max_attempts=1)
def quote(text: str) -> None:
    raise ValueError(f"no such customer: {text}")


@task(max_attempts=1)
def decline(order: int) -> None:
    raise Declined(f"order {order}")


@task(retry=None)
def decline_once(order: int) -> str:
    if Payment.objects.filter(order=order).exists():
        return "paid"
    Payment.objects.create(order=order)
    raise Declined(f"order {order}")


@task(takes_context=True)
def about(context: Any) -> dict[str, Any]:
    return {
        "id": context.task_result.id, "attempt": context.attempt, "token": context.job.token,
        "workers": context.task_result.worker_ids, "status": context.task_result.status,
    }  # fmt: skip


@task(takes_context=True, transaction=True)
def pay(context: Any, order: int, fail: bool = False) -> int:
    payment = Payment.objects.create(order=order)
    if fail:
        raise Dead("no money")
    return int(payment.pk)


@task(transaction=True, max_attempts=1)
def commit_by_hand(order: int) -> None:
    Payment.objects.create(order=order)
    with connection.cursor() as cursor:
        cursor.execute("commit")
    Payment.objects.create(order=order + 1)


@task
async def pay_async(order: int) -> int:
    payment = await Payment.objects.acreate(order=order)
    return int(payment.pk)


@task
def unusual() -> Any:
    return lambda: True


@task
def snooze() -> None:
    raise Snooze(timedelta(hours=1), "later")


@task
def die_once(order: int) -> str:
    """Take the worker along, the first time."""
    if Payment.objects.filter(order=order).exists():
        return "survived"
    Payment.objects.create(order=order)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


@task
def wait(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


@task
def greet(name: str) -> str:
    return f"hello {name}"


@task
def charge(order_id: int) -> int:
    return int(Order.objects.filter(pk=order_id).update(paid=True))


@task(transaction=True, takes_context=True)
def pay_and_be_cancelled(context: Any, order: int) -> None:
    """Another takes the job away between the task's rows and its success."""
    Payment.objects.create(order=order)
    with psycopg.connect(dsn_of("default"), autocommit=True) as other:
        other.execute("select faultline.cancel(%s, 'withdrawn')", [context.job.id])


@task(max_attempts=1)
def break_connection() -> None:
    with connection.cursor() as cursor:
        cursor.execute("select pg_terminate_backend(pg_backend_pid())")
