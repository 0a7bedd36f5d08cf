"""Faultline's schema in a database of Django: installed and updated by each `manage.py migrate`.

By the signal `pre_migrate` and not by a migration of Django: one of those runs once, and Faultline's
functions change with each release, whether or not its tables do. The signal comes before the project's own
migrations, so those may enqueue; it also comes for the databases that tests make. Where nothing is to do, it
only looks.
"""

from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError as DjangoError

from faultline.errors import DatabaseError, FaultlineError
from faultline.integrations.django.conf import database_alias, dsn_of
from faultline.store import migrate
from faultline.store.migrate import SchemaState


def migrate_before(*, using: str, verbosity: int = 1, stdout: Any = None, **_: Any) -> None:
    """Bring the schema of this database to this version, where the jobs are kept in it."""
    if using != database_alias():
        return
    try:
        before = migrate.migrate(dsn_of(using))
    except FaultlineError as error:
        raise CommandError(f"faultline: {error}") from error
    if verbosity >= 1 and not before.is_current:
        word = "installed" if before.number == 0 else "updated"
        print(f"  Faultline's schema {word} in database {using}", file=stdout)


def state_of(alias: str) -> SchemaState | str:
    """The schema of a database, or the reason why it cannot be told."""
    try:
        return migrate.check(dsn_of(alias))
    except (DatabaseError, DjangoError) as error:
        return str(error)
