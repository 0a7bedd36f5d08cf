"""System checks: `manage.py check`, and `manage.py check --database default` for the schema."""

from collections.abc import Sequence
from typing import Any, Final

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.checks.registry import registry
from django.db import connections

from faultline.bounds import check_queue_name
from faultline.errors import ConfigError, FaultlineError
from faultline.integrations.django.conf import database_alias, faults_of
from faultline.integrations.django.schema import state_of

_OF_DJANGO: Final = ("django.tasks.checks", "django_tasks.checks")


def check_settings(**_: Any) -> list[CheckMessage]:
    """Whether FAULTLINE is right, and names a database that can hold jobs."""
    wrong: list[CheckMessage] = [
        Error(fault, id="faultline.E001") for fault in faults_of(getattr(settings, "FAULTLINE", {}))
    ]
    alias = database_alias()
    if alias not in connections.settings:
        known = ", ".join(connections.settings)
        return [
            *wrong,
            Error(f"FAULTLINE['DATABASE'] is {alias!r}; DATABASES has {known}", id="faultline.E002"),
        ]
    connection = connections[alias]
    if connection.vendor != "postgresql":
        wrong.append(
            Error(
                f"the database {alias!r} is of {connection.vendor}, and Faultline's jobs are in PostgreSQL",
                hint='Use django.db.backends.postgresql, or name another: FAULTLINE = {"DATABASE": ...}.',
                id="faultline.E003",
            )
        )
    elif getattr(connection.Database, "__name__", "") != "psycopg":
        wrong.append(
            Error(
                f"the database {alias!r} is used by {connection.Database.__name__}; its driver has to be "
                "psycopg 3",
                hint="pip install 'psycopg[binary]'; Django prefers it where both are installed.",
                id="faultline.E004",
            )
        )
    return wrong


def check_schema(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Whether the schema is there and of this version. A warning: `migrate` itself makes these checks."""
    alias = database_alias()
    if not databases or alias not in databases or check_settings():
        return []
    state = state_of(alias)
    if isinstance(state, str):
        return [Error(f"Faultline's schema cannot be looked at: {state}", id="faultline.E006")]
    if state.is_current:
        return []
    said = "is not installed" if state.number == 0 else "is of another version"
    return [
        Warning(
            f"Faultline's schema {said} in the database {alias!r}",
            hint="Run manage.py migrate.",
            id="faultline.W001",
        )
    ]


def check_tasks(**_: Any) -> list[CheckMessage]:
    """What is wrong with the entries of TASKS, where django.tasks itself does not look at them.

    `django_tasks` looks only where it is in INSTALLED_APPS, which nothing else asks for.
    """
    looked_at = any(check.__module__ in _OF_DJANGO for check in registry.get_checks())
    if looked_at or not getattr(settings, "TASKS", None):
        return []
    try:
        from faultline.integrations.django.backend import FaultlineBackend
        from faultline.integrations.django.task_backend.interface import task_backends
    except ConfigError as error:
        return [Error(str(error), id="faultline.E005")]
    ours = (backend for backend in task_backends.all() if isinstance(backend, FaultlineBackend))
    return [fault for backend in ours for fault in backend.check()]


def faults_of_backend(backend: Any) -> list[CheckMessage]:
    """What is wrong with one entry of TASKS."""
    from faultline.integrations.django.task_backend.task import check_options

    where = f"TASKS[{backend.alias!r}]"
    wrong = []
    try:
        check_options(backend.options)
        for queue in backend.queues:
            check_queue_name(queue)
    except FaultlineError as error:
        wrong.append(Error(f"{where}: {error}", id="faultline.E005"))
    if not apps.is_installed("faultline.integrations.django"):
        wrong.append(
            Error(
                f"{where} uses Faultline, and INSTALLED_APPS lacks 'faultline.integrations.django'",
                hint="Without it manage.py migrate does not install Faultline's schema.",
                id="faultline.E007",
            )
        )
    return wrong
