"""Examine: check every promise of Faultline on a database, and change nothing."""

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from faultline.audit.report import AuditReport
from faultline.audit.walk import Effects, Tell, TimeIsUp, Walk
from faultline.errors import InputError

BOUND: Final = timedelta(minutes=2)
"""The longest time of a lease past its end: a lease of held fire, and a minute for a full reap."""


def examine(
    conn: psycopg.Connection[Any],
    *,
    effects: str | Effects | None = None,
    acknowledged: Collection[int] = (),
    bound: timedelta = BOUND,
    limit: timedelta | None = None,
    tell: Tell = lambda done, total: None,
) -> AuditReport:
    """Read one snapshot of the whole database and give each invariant's verdict.

    >>> report = examine(conn)
    >>> assert report.holds, str(report)

    `effects` is a table of yours to compare with the ledger; `acknowledged` are ids that enqueues answered
    with, or a mapping of them to the moments of the answers (None where a moment was not noted): with one,
    retention explains nothing that is younger. With a `limit` the walk ends in time, and the report says that
    it is not complete.
    """
    if conn.info.transaction_status is not TransactionStatus.IDLE:
        raise InputError("examine reads a snapshot of its own; give it a connection without a transaction")
    table = Effects(effects) if isinstance(effects, str) else effects
    walk = Walk(conn, bound, limit)
    try:
        with conn.transaction():
            walk.all_of_it(table, acknowledged, tell)
        complete = True
    except (TimeIsUp, psycopg.errors.QueryCanceled):
        complete = False
    return walk.notes.report(walk.moment, complete=complete, standby=walk.standby)
