"""A primary and its standby, to be frozen as a whole, woken and promoted."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from faultline.embedded import EmbeddedServer
from faultline.lab.drills.stage.standby import StandbyServer, a_standby_of
from faultline.store.migrate import migrate
from tests.promises.standby import a_primary


class Pair:
    """Two servers, of which the first is the primary."""

    def __init__(self, primary: EmbeddedServer, standby: StandbyServer) -> None:
        self.primary, self.standby = primary, standby
        self._frozen: list[int] = []

    @property
    def old(self) -> str:
        return self.primary.dsn("shop")

    @property
    def new(self) -> str:
        return self.standby.dsn("shop")

    @property
    def both(self) -> str:
        """As a worker is told that has to survive a failover; without a word about which takes writes."""
        here, there = conninfo_to_dict(self.old), conninfo_to_dict(self.new)
        hosts, ports = (f"{here[name]},{there[name]}" for name in ("host", "port"))
        return make_conninfo(self.old, host=hosts, port=ports)

    def freeze(self) -> None:
        """Stop every process of the primary: its kernel goes on accepting and acknowledging."""
        self._freeze(self.primary.pid)

    def freeze_new(self) -> None:
        """The same with the one that was the standby."""
        self._freeze(int((self.standby.folder / "data" / "postmaster.pid").read_text().split()[0]))

    def _freeze(self, head: int) -> None:
        children = subprocess.run(["pgrep", "-P", str(head)], capture_output=True, text=True).stdout.split()
        self._frozen = [head, *map(int, children)]
        self._send(signal.SIGSTOP)

    def wake(self) -> None:
        self._send(signal.SIGCONT)
        self._frozen = []

    def _send(self, what: signal.Signals) -> None:
        for pid in self._frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, what)

    def fail_over(self) -> None:
        """The primary stands still, and the standby that has all of it is promoted."""
        self.standby.catch_up(self.old)
        self.freeze()
        self.standby.promote()


@contextmanager
def a_pair() -> Iterator[Pair]:
    with a_primary() as primary:
        primary.create_database("shop")
        migrate(primary.dsn("shop"))
        with a_standby_of(primary, "standby") as standby:
            standby.catch_up(primary.dsn("shop"))
            pair = Pair(primary, standby)
            try:
                yield pair
            finally:
                pair.wake()
