"""The hosts that a DSN names, by libpq's rules: lists in the DSN, or in the environment."""

import os
from collections.abc import Mapping
from typing import Any, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_MULTIPLE: Final = {"host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT"}


def each_host(conninfo: str) -> tuple[dict[str, str], ...]:
    """`host`, `hostaddr` and `port` of each; a single one without any where libpq would refuse the lists.

    >>> each_host("host=a,b port=1")
    ({'host': 'a', 'port': '1'}, {'host': 'b', 'port': '1'})
    """
    told: dict[str, Any] = conninfo_to_dict(conninfo)
    lists = {name: _listed(told, name) for name in _MULTIPLE}
    count = max(len(lists["host"]), len(lists["hostaddr"]), 1)
    fits = all(
        len(values) in (0, count) or (name == "port" and len(values) == 1) for name, values in lists.items()
    )
    if not fits:
        return ({},)
    return tuple(
        {name: values[place if len(values) > 1 else 0] for name, values in lists.items() if values}
        for place in range(count)
    )


def split(conninfo: str) -> tuple[str, ...]:
    """One conninfo for each host; only the DSN itself if libpq has to choose by its own rules.

    >>> sorted(split("host=a,b port=1,2 dbname=shop")[1].split())
    ['dbname=shop', 'host=b', 'port=2', 'target_session_attrs=any']
    >>> split("host=a,b target_session_attrs=standby")
    ('host=a,b target_session_attrs=standby',)
    """
    told: dict[str, Any] = conninfo_to_dict(conninfo)
    wanted = told.get("target_session_attrs") or os.environ.get("PGTARGETSESSIONATTRS") or "read-write"
    each = each_host(conninfo)
    if len(each) < 2 or wanted not in ("read-write", "primary"):
        return (conninfo,)
    return tuple(make_conninfo(**{**told, **own, "target_session_attrs": "any"}) for own in each)


def name_of(host: str) -> str:
    """The name of a host for messages.

    >>> name_of("host=db1 port=5433 password=hidden"), name_of("host=/run/pg")
    ('db1:5433', '/run/pg')
    """
    told: dict[str, Any] = conninfo_to_dict(host)
    name = told.get("host") or told.get("hostaddr") or "the local socket"
    return f"{name}:{told['port']}" if told.get("port") else str(name)


def _listed(told: Mapping[str, Any], name: str) -> list[str]:
    value = str(told.get(name) or ("" if "service" in told else os.environ.get(_MULTIPLE[name], "")))
    return value.split(",") if value else []
