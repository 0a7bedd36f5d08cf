"""A Django project on a database of the test's own."""

import contextlib
from collections.abc import Iterator

import pytest
from django.core.management import call_command
from django.db import connections

from faultline.integrations.django import app
from tests.integrations.django.settings import database as settings_of


@pytest.fixture
def project(database: str) -> Iterator[str]:
    """The project's tables beside the jobs; gives the DSN."""
    for dsn in project_on(database):
        call_command("migrate", verbosity=0, run_syncdb=True)
        yield dsn


def project_on(dsn: str) -> Iterator[str]:
    """For fixtures: Django works on this database, where nothing is migrated yet."""
    with contextlib.suppress(AttributeError):
        del connections["default"]  # of a database that has gone, or of none
    settings = connections.configure_settings({"default": settings_of(dsn)})
    connections.databases["default"] = settings["default"]
    yield dsn
    app.close()
    connections["default"].close()
    del connections["default"]
