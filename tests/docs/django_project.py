"""What stands around the fragments of the page on Django: a project, its models, and its names."""

import os
import sys
from typing import Any


def names() -> dict[str, Any]:
    """Set Django up on the database of the block."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.integrations.django.settings"
    import django
    from django.core.management import call_command

    django.setup()
    if django.VERSION < (6,):
        import django_tasks

        sys.modules["django.tasks"] = django_tasks
    call_command("migrate", verbosity=0, run_syncdb=True)
    from django.db import connection, transaction
    from django.test import TransactionTestCase
    from django.utils import timezone

    from faultline.integrations.django import app
    from faultline.integrations.django.task_backend.interface import task
    from tests.integrations.django.shop import models, tasks

    models.Order.objects.create(pk=7, customer="Ada")
    shop = {name: getattr(models, name) for name in ("Order", "Payment", "Report")}
    django_names = {
        "connection": connection, "transaction": transaction, "timezone": timezone,
        "TransactionTestCase": TransactionTestCase, "call_command": call_command,
    }  # fmt: skip
    return {
        **shop,
        **django_names,
        "app": app,
        "task": task,
        "greet": tasks.greet,
        "charge": tasks.charge,
    }
