"""Tests as a project has them, for Django's own runner; not collected by pytest."""

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from django.test import TestCase, TransactionTestCase

from faultline.integrations.django.task_backend.interface import TaskResultStatus
from tests.integrations.django.shop import tasks
from tests.integrations.django.shop.models import Payment


class InATransaction(TestCase):  # type: ignore[misc]
    def test_a_task_is_enqueued_and_rolled_back_with_the_test(self) -> None:
        for order in range(3):
            with self.captureOnCommitCallbacks(execute=True):
                result = tasks.pay.enqueue(order)

        assert tasks.pay.get_result(result.id).status == TaskResultStatus.READY

    def test_a_worker_is_refused(self) -> None:
        """It would wait for the test's own transaction, which waits for it."""
        tasks.pay.enqueue(1)

        with pytest.raises(CommandError, match="TransactionTestCase"):
            call_command("faultline_worker", until_empty=True, verbosity=0)

    async def test_async_code_enqueues(self) -> None:
        result = await tasks.add_async.aenqueue(1)

        assert (await tasks.add_async.aget_result(result.id)).args == [1]


class WithCommits(TransactionTestCase):  # type: ignore[misc]
    def test_a_worker_runs_what_was_committed(self) -> None:
        with transaction.atomic():
            results = [tasks.pay.enqueue(order) for order in range(3)]

        call_command("faultline_worker", until_empty=True, verbosity=0)

        for result in results:
            result.refresh()
            assert result.status == TaskResultStatus.SUCCESSFUL
        assert Payment.objects.count() == 3

    def test_an_async_task_runs(self) -> None:
        result = tasks.pay_async.enqueue(1)

        call_command("faultline_worker", until_empty=True, verbosity=0)

        result.refresh()
        assert result.return_value == Payment.objects.get().pk
