"""The setting FAULTLINE, and the address of a database of Django as libpq takes it."""

from collections.abc import Mapping
from typing import Any, Final

from django import conf as django_conf  # doctest would set `settings` up, were it a name here
from django.db import DEFAULT_DB_ALIAS, connections
from psycopg.conninfo import make_conninfo
from psycopg.pq import Conninfo

from faultline.errors import ConfigError
from faultline.text.suggest import did_you_mean

KNOWN: Final = {"DATABASE": str, "TASK_MODULES": (list, tuple)}
"""The keys of FAULTLINE: the alias of the jobs' database; modules with tasks beside each app's `tasks`."""


def setting(name: str, default: Any) -> Any:
    """One key of the setting FAULTLINE."""
    given = getattr(django_conf.settings, "FAULTLINE", {})
    return given.get(name, default) if isinstance(given, Mapping) else default


def database_alias() -> str:
    """The alias in DATABASES of the database that holds the jobs."""
    return str(setting("DATABASE", DEFAULT_DB_ALIAS))


def task_modules() -> list[str]:
    """The modules with tasks that no app has as its `tasks`."""
    return [str(name) for name in setting("TASK_MODULES", [])]


def faults_of(given: object) -> list[str]:
    """What is wrong with the value of FAULTLINE.

    >>> faults_of({"DATABSE": "jobs"})
    ["FAULTLINE has no key 'DATABSE'; did you mean DATABASE?"]
    """
    if not isinstance(given, Mapping):
        return [f"FAULTLINE is a dict, not {type(given).__name__}"]
    wrong = []
    for name, value in given.items():
        kind: Any = KNOWN.get(name)
        if kind is None:
            hint = did_you_mean(str(name), list(KNOWN)) or f": it takes {', '.join(KNOWN)}"
            wrong.append(f"FAULTLINE has no key {name!r}{hint}")
        elif not isinstance(value, kind):
            wrong.append(f"FAULTLINE[{name!r}] cannot be {value!r}")
    return wrong


def dsn_of(alias: str) -> str:
    """The address of one of Django's databases; in a test, that of the test's database."""
    connection = connections[alias]
    if connection.vendor != "postgresql":
        raise ConfigError(
            f"the database {alias!r} is of {connection.vendor}; Faultline's jobs are in PostgreSQL. Name "
            'another one: FAULTLINE = {"DATABASE": ...}'
        )
    params = connection.get_connection_params()
    known = {option.keyword.decode() for option in Conninfo.get_defaults()}
    given = {name: value for name, value in params.items() if name in known and value is not None}
    if role := connection.settings_dict["OPTIONS"].get("assume_role"):
        given["options"] = f"{given.get('options', '')} -c role={role}".strip()
    return make_conninfo("", **given)
