"""Drills through a server: its process, the key its workers show, and what to look for in place of rows."""

from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from faultline.lab.drills.view.trace import DRILL, TraceSign
from faultline.server.auth import mint
from faultline.store import calls
from faultline.store.pool import Store

SERVER: Final = "server"
"""The server's name among the processes of a drill."""

COMMITTED: Final = (
    "select entry.token from faultline.history(%s) as entry"
    " where entry.outcome = 'succeeded' and entry.worker = %s"
)

GATHER: Final = """
insert into effects (job_id, token, worker, wrote)
select job.id, (row ->> 0)::bigint, row ->> 1, row ->> 2
from unnest(%s::bigint[]) as asked (id)
cross join lateral faultline.get_job(asked.id) as job
cross join lateral jsonb_array_elements(job.result -> 'rows') as row
where job.state = 'succeeded'
"""
"""Over a server no handler writes rows beside its success: the rows are the result."""


@dataclass(frozen=True)
class DrillServer:
    """A server before the drill's database; its workers know only this server."""

    url: str
    key: str = field(repr=False)

    def order(self) -> dict[str, Any]:
        """What a worker gets instead of a DSN."""
        return {"server": self.url, "key": self.key}


def make_key(conn: psycopg.Connection[Any]) -> str:
    """A key with the right to work, and no other right."""
    key = mint()
    Store.run_in(conn, calls.create_key(key.id, key.hash, f"drill-{key.id}", ["work"]))
    return key.text


def committed(who: str, token: int) -> TraceSign:
    """The sign that a transaction itself sends where workers commit in the database."""
    return TraceSign(DRILL, "committed", {"worker": who, "token": token}, level="debug")
