"""What a child's environment says of its worker's database."""

import os
from typing import Any, Final
from urllib.parse import quote, urlencode

from psycopg.conninfo import conninfo_to_dict

URL_PREFIXES: Final = ("postgresql://", "postgres://")
OF_DJANGO: Final = "client_encoding"  # each connection of Django names it


def name_database(dsn: str, pooler: str) -> None:
    """Set FAULTLINE_DSN and FAULTLINE_POOLER, which an app may read when the child imports it.

    An address that names the worker's database already stays as it was written: the app made sense of it
    once, when the worker imported it. Any other becomes a URL, which is what apps expect there: SQLAlchemy
    and Django's settings cannot read the pairs of libpq.
    """
    if not _names(os.environ.get("FAULTLINE_DSN"), dsn):
        os.environ["FAULTLINE_DSN"] = as_url(dsn)
    os.environ["FAULTLINE_POOLER"] = pooler


def as_url(dsn: str) -> str:
    """A DSN as a URL, where it has that form.

    >>> as_url("host=db port=5433 dbname=shop user=app password='a b'")
    'postgresql://app:a%20b@db:5433/shop'
    >>> as_url("host=/run/postgresql dbname=shop")
    'postgresql:///shop?host=%2Frun%2Fpostgresql'
    """
    if dsn.startswith(URL_PREFIXES):
        return dsn
    told = conninfo_to_dict(dsn)
    url = _url(dict(told))
    return url if conninfo_to_dict(url) == told else dsn


def _url(told: dict[str, Any]) -> str:
    login = quote(told.pop("user", ""), safe="")
    if "password" in told:
        login += ":" + quote(told.pop("password"), safe="")
    place = ""
    if not any(sign in told.get("host", "/") for sign in "/,:"):  # one host by its name or IPv4 address
        place = told.pop("host") + (f":{told.pop('port')}" if "port" in told else "")
    name = quote(told.pop("dbname", ""), safe="")
    rest = urlencode(told, quote_via=quote)
    return f"postgresql://{login}{'@' if login else ''}{place}/{name}{'?' if rest else ''}{rest}"


def _names(written: str | None, dsn: str) -> bool:
    """Whether an address says what a worker's DSN says, in whatever form."""
    try:
        return written is not None and _told(written) == _told(dsn)
    except Exception:  # not an address at all
        return False


def _told(dsn: str) -> dict[str, str]:
    return {name: str(value) for name, value in conninfo_to_dict(dsn).items() if name != OF_DJANGO}
