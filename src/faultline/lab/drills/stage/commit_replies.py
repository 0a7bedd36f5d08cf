"""Make a server answer no commit, or only those that a standby has.

A server that waits for a synchronous standby has made a commit durable and does not say so yet. One that
waits for a standby that does not exist never says so.
"""

import threading
from typing import Any, Final

import psycopg

from faultline.lab.drills.stage.wait_until import wait_until
from faultline.store.driver.connect import connect

NO_STANDBY: Final = "no_such_standby"
UNANSWERED: Final = "select from pg_stat_activity where wait_event = 'SyncRep' and query ~* %s"


def hold_all_replies(conn: psycopg.Connection[Any], dsn: str) -> None:
    """Return when the server leaves commits unanswered, except those of this connection."""
    conn.execute("set synchronous_commit = local")
    _wait_for_standby(conn, NO_STANDBY)
    seen = threading.Event()
    threading.Thread(target=_commit_on, args=[dsn, seen], daemon=True).start()
    try:
        wait_until(conn, UNANSWERED, ["drill looks"], "the server answers no commit any more")
    finally:
        seen.set()


def answer_with(conn: psycopg.Connection[Any], dsn: str, standby: str) -> None:
    """Return when the server answers only the commits that this standby has."""
    hold_all_replies(conn, dsn)  # from here on no commit is answered without a standby, and there is no gap
    _wait_for_standby(conn, standby)
    conn.execute("reset synchronous_commit")


def forget_standbys(conn: psycopg.Connection[Any]) -> None:
    """The server waits for no standby after its next start; until then all stays as it is."""
    conn.execute("alter system reset synchronous_standby_names")


def _wait_for_standby(conn: psycopg.Connection[Any], name: str) -> None:
    conn.execute(psycopg.sql.SQL("alter system set synchronous_standby_names = {}").format(name))
    conn.execute("select pg_reload_conf()")


def _commit_on(dsn: str, seen: threading.Event) -> None:
    """Commit until a commit is not answered: only then has the server loaded the setting."""
    try:
        with connect(dsn) as conn:
            while not seen.is_set():
                conn.execute("select pg_logical_emit_message(true, 'drill looks', '')")
    except psycopg.OperationalError:
        return  # the server has gone
