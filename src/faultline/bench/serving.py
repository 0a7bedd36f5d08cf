"""A server before the database of a bench: its process, and what a worker has to know of it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from faultline.drills.processes import Keeper, WorkerProcess
from faultline.drills.served import SERVER, make_key
from faultline.drills.trace import Trace
from faultline.store.connect import connect


@contextmanager
def served(dsn: str) -> Iterator[Mapping[str, str]]:
    """Serve a database while the block runs; gives the environment of a worker that knows only the server."""
    trace, keeper = Trace(), Keeper()
    with connect(dsn) as conn:
        key = make_key(conn)
    server = WorkerProcess(SERVER, {"dsn": dsn}, trace, keeper, program="server_main")
    try:
        url = trace.wait_for_event(SERVER, "serving").facts["url"]
        yield {"FAULTLINE_SERVER": url, "FAULTLINE_API_KEY": key}
    finally:
        server.end()
        keeper.close()
