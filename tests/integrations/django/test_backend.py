"""The backend of django.tasks: enqueue, results, and what a worker makes of a task."""

import asyncio
import sys
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone

from faultline.errors import BadArguments, ConfigError, TransactionEnded
from faultline.integrations.django import app
from faultline.integrations.django.task_backend.interface import (
    InvalidTask,
    TaskResultDoesNotExist,
    TaskResultStatus,
    task,
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from tests.integrations.django.shop import tasks
from tests.integrations.django.shop.models import Payment


def work():
    call_command("faultline_worker", until_empty=True, verbosity=0)


def test_a_task_runs_and_its_result_is_read_back(project):
    result = tasks.add.enqueue(1, b=2)
    assert (result.status, result.attempts) == (TaskResultStatus.READY, 0)
    assert tasks.add.get_result(result.id) == result

    work()
    result.refresh()

    assert (result.status, result.return_value, result.attempts) == (TaskResultStatus.SUCCESSFUL, 3, 1)
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert (result.args, result.kwargs, len(result.worker_ids)) == ([1], {"b": 2}, 1)


def test_an_async_task_runs_and_may_use_the_orm(project):
    added, paid = tasks.add_async.enqueue(1, 2), tasks.pay_async.enqueue(7)

    work()

    assert tasks.add_async.get_result(added.id).return_value == 3
    assert tasks.pay_async.get_result(paid.id).return_value == Payment.objects.get().pk


def test_a_task_is_enqueued_with_its_transaction_and_not_without(project):
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        lost = tasks.add.enqueue(1)
        raise ZeroDivisionError
    with transaction.atomic():
        kept = tasks.add.enqueue(1)

    assert tasks.add.get_result(kept.id).status == TaskResultStatus.READY
    with pytest.raises(TaskResultDoesNotExist):
        tasks.add.get_result(lost.id)


def test_async_code_enqueues_and_reads(project):
    async def main():
        result = await tasks.add.aenqueue(1, b=1)
        assert await tasks.add.aget_result(result.id) == result
        with pytest.raises(TaskResultDoesNotExist):
            await tasks.add.aget_result("0")

    asyncio.run(main())


def test_the_highest_priority_runs_first(project):
    for priority, a in ((0, 1), (-100, 2), (100, 3)):
        tasks.pay.using(priority=priority).enqueue(a)

    call_command("faultline_worker", until_empty=True, concurrency=1, verbosity=0)

    assert list(Payment.objects.order_by("pk").values_list("order", flat=True)) == [3, 1, 2]


def test_run_after_and_the_queue_are_kept(project):
    later = timezone.now() + timedelta(hours=1)
    result = tasks.add.using(run_after=later, queue_name="mail", priority=7).enqueue(1)

    found = tasks.add.get_result(result.id)

    assert (found.task.run_after, found.task.queue_name, found.task.priority) == (later, "mail", 7)
    assert found == result
    work()
    assert tasks.add.get_result(result.id).status == TaskResultStatus.READY


def test_a_failure_is_told_with_its_class_and_where(project):
    result = tasks.decline.enqueue(7)

    work()
    result.refresh()

    (error,) = result.errors
    assert (result.status, result.attempts) == (TaskResultStatus.FAILED, 1)
    assert error.exception_class is tasks.Declined
    assert error.traceback.endswith("Declined: order 7\n")
    assert "shop/tasks.py" in error.traceback
    with pytest.raises(ValueError, match="Task failed"):
        result.return_value  # noqa: B018


def test_the_text_of_an_error_imports_nothing(project, tmp_path, monkeypatch):
    """An error may quote what a client wrote, which may look like the line that names its class."""
    (tmp_path / "of_a_client.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    other = tasks.quote.enqueue("Ada\nof class of_a_client.Boom")
    same = tasks.quote.enqueue("Ada\nof class of_a_client.ValueError")

    work()
    other.refresh()
    same.refresh()

    assert other.errors[0].exception_class is ValueError
    with pytest.raises(ImportError):
        same.errors[0].exception_class  # noqa: B018
    assert "of_a_client" not in sys.modules


def test_a_failure_with_attempts_left_is_tried_again(project):
    result = tasks.decline_once.enqueue(7)

    work()
    result.refresh()
    assert (result.status, result.is_finished, len(result.errors)) == (TaskResultStatus.READY, False, 1)
    app.retry_now(int(result.id))
    work()
    result.refresh()

    assert (result.status, result.return_value, result.attempts) == (TaskResultStatus.SUCCESSFUL, "paid", 2)
    assert [error.exception_class for error in result.errors] == [tasks.Declined]


def test_a_result_that_is_no_json_fails_its_task(project):
    result = tasks.unusual.using(max_attempts=1).enqueue()

    work()
    result.refresh()

    assert (result.status, result.errors[0].exception_class) == (TaskResultStatus.FAILED, TypeError)


def test_a_task_that_takes_its_context_knows_itself(project):
    result = tasks.about.enqueue()

    work()
    result.refresh()

    told = result.return_value
    assert (told["id"], told["attempt"], told["status"]) == (result.id, 1, "RUNNING")
    assert told["workers"] == result.worker_ids
    assert told["token"] > 0


def test_a_task_in_its_transaction_commits_its_rows_and_its_success_together(project):
    paid, refused = tasks.pay.enqueue(1), tasks.pay.enqueue(2, fail=True)

    work()

    assert tasks.pay.get_result(paid.id).return_value == Payment.objects.get().pk
    assert tasks.pay.get_result(refused.id).status == TaskResultStatus.FAILED


def test_a_task_that_commits_its_transaction_by_sql_is_told_so(project):
    result = tasks.commit_by_hand.enqueue(1)

    work()

    result.refresh()
    assert (result.status, result.errors[0].exception_class) == (TaskResultStatus.FAILED, TransactionEnded)
    assert [payment.order for payment in Payment.objects.all()] == [1]


def test_a_snoozed_task_is_ready_and_has_no_attempt(project):
    result = tasks.snooze.enqueue()

    work()
    result.refresh()

    assert (result.status, result.attempts, result.errors) == (TaskResultStatus.READY, 0, [])


def test_signals_are_sent_for_each_step(project):
    told = []

    def note(signal, name):
        def receive(sender, task_result, **_):
            told.append((name, sender.__name__, task_result.status.value, task_result.attempts))

        signal.connect(receive, weak=False)
        return lambda: signal.disconnect(receive)

    undo = [
        note(task_enqueued, "enqueued"),
        note(task_started, "started"),
        note(task_finished, "finished"),
    ]
    try:
        tasks.add.enqueue(1)
        work()
        tasks.decline.enqueue(1)
        work()
        tasks.decline_once.enqueue(1)
        work()
    finally:
        for each in undo:
            each()

    sender = "FaultlineBackend"
    assert told == [
        ("enqueued", sender, "READY", 0),
        ("started", sender, "RUNNING", 1),
        ("finished", sender, "SUCCESSFUL", 1),
        ("enqueued", sender, "READY", 0),
        ("started", sender, "RUNNING", 1),
        ("finished", sender, "FAILED", 1),
        ("enqueued", sender, "READY", 0),
        ("started", sender, "RUNNING", 1),
    ]


def test_a_key_makes_two_enqueues_one_task(project):
    first = tasks.add.using(key="order-7").enqueue(1)
    second = tasks.add.using(key="order-7").enqueue(1)

    assert first.id == second.id


def test_arguments_are_json(project):
    with pytest.raises(TypeError, match="Unsupported type"):
        tasks.add.enqueue(timezone.now())
    result = tasks.add.enqueue((1, b"x"), b={"c": [None, 1.5]})
    assert (result.args, result.kwargs) == ([[1, "x"]], {"b": {"c": [None, 1.5]}})
    assert tasks.add.get_result(result.id) == result


@pytest.mark.parametrize(("args", "kwargs"), [((1, 2, 3), {}), ((), {}), ((1,), {"c": 2}), ((1,), {"a": 2})])
def test_a_call_that_does_not_fit_is_refused(project, args, kwargs):
    with pytest.raises(BadArguments, match=r"shop\.tasks\.add: .*nothing was enqueued"):
        tasks.add.enqueue(*args, **kwargs)


def test_an_option_that_is_none_is_named():
    with pytest.raises(ConfigError, match="@task has no option 'max_attempt'; did you mean max_attempts"):
        task(max_attempt=3)(tasks.add.func)


def test_an_async_task_cannot_have_djangos_transaction():
    with pytest.raises(InvalidTask, match="is async, and transaction=True is for plain tasks"):
        task(transaction=True)(tasks.add_async.func)


def test_long_arguments_are_sent_and_read(project):
    result = tasks.add.enqueue("x" * 100_000)

    assert tasks.add.get_result(result.id).args == ["x" * 100_000]


@pytest.mark.parametrize(
    "options",
    [
        {"queue_name": "other"},
        {"priority": 101},
        {"max_attempts": 0},
        {"timeout": timedelta(0)},
        {"key": "\x00"},
    ],
)
def test_what_cannot_be_is_refused(project, options):
    with pytest.raises(InvalidTask):
        tasks.add.using(**options)


@pytest.mark.parametrize("task_id", ["", "x", "0", "-1", "٣", str(2**63), "1" * 5_000, "12345"])
def test_an_id_that_is_none_is_told(project, task_id):
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result(task_id)


def test_the_result_of_another_task_is_told(project):
    from faultline.integrations.django.task_backend.interface import TaskResultMismatch

    result = tasks.add.enqueue(1)
    with pytest.raises(TaskResultMismatch):
        tasks.pay.get_result(result.id)
