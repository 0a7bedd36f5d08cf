"""Drills through a server: its process, the key its workers show, and what to look for in place of rows."""

from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from faultline.access import mint
from faultline.drills.trace import DRILL, Sign
from faultline.store import calls
from faultline.store.run import Store

SERVER: Final = "server"
"""Who the server is, among the processes of a drill."""

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
"""Over a server no handler writes rows beside its success: they are the result, and come with it."""


@dataclass(frozen=True)
class Served:
    """A server that stands before the drill's database; its workers know this, and nothing else."""

    url: str
    key: str = field(repr=False)

    def order(self) -> dict[str, Any]:
        """What a worker is told instead of a DSN."""
        return {"server": self.url, "key": self.key}


def make_key(conn: psycopg.Connection[Any]) -> str:
    """A key that may work, and nothing else."""
    key = mint()
    Store.run_in(conn, calls.create_key(key.id, key.hash, f"drill-{key.id}", ["work"]))
    return key.text


def committed(who: str, token: int) -> Sign:
    """The sign that a transaction gives of itself where workers commit in the database."""
    return Sign(DRILL, "committed", {"worker": who, "token": token}, level="debug")
