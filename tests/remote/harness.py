"""Servers for tests, each in a process of its own, and workers that know nothing else."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

from faultline.config import Settings, WorkerConfig
from faultline.lab.drills.processes.server_process import SERVER, make_key
from faultline.lab.drills.processes.worker_processes import DrillProcess, ProcessKeeper
from faultline.lab.drills.view.trace import Trace
from faultline.remote.remote_backend import RemoteBackend
from faultline.remote.server_address import ServerAddress
from faultline.store.driver.connect import connect
from faultline.task import TaskSpec
from tests.worker import harness


class Served:
    """A server process that can be killed and started again on its port."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._keeper = ProcessKeeper()
        self._process: DrillProcess | None = None
        self._port = 0
        self.trace = Trace()
        with connect(dsn) as conn:
            self.key = make_key(conn)
        self.start()

    @property
    def url(self) -> str:
        return f"grpc://127.0.0.1:{self._port}"

    @property
    def address(self) -> ServerAddress:
        return ServerAddress.read(self.url, self.key)

    def backend(self, dsn: str | None = None) -> RemoteBackend:
        """A backend of a worker's own over this server."""
        return RemoteBackend(self.address, Settings(dsn=dsn))

    def start(self) -> None:
        if self._process is not None:
            self._process.end()
        self.trace = Trace()
        order = {"dsn": self.dsn, "port": self._port, "tick_seconds": 0.25}
        self._process = DrillProcess(SERVER, order, self.trace, self._keeper, program="server_main")
        url = self.trace.wait_for_event(SERVER, "serving").facts["url"]
        self._port = int(url.rpartition(":")[2])

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.process.returncode is None

    def kill(self) -> None:
        """End it as a crash of its machine would."""
        assert self._process is not None
        self._process.end()

    def stop(self) -> None:
        """Tell it to stop, as a service manager does; it takes its time."""
        assert self._process is not None
        self._process.send(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop its process, as a paused machine would: its sockets stay open, and nothing answers."""
        assert self._process is not None
        self._process.send(signal.SIGSTOP)

    def wake(self) -> None:
        assert self._process is not None
        self._process.send(signal.SIGCONT)

    def wait_gone(self) -> None:
        assert self._process is not None
        self._process.wait_exit()

    def close(self) -> None:
        self.kill()
        self._keeper.close()


@contextlib.contextmanager
def working(
    served: Served,
    *handlers: Callable[..., Any] | TaskSpec,
    config: WorkerConfig | None = None,
    dsn: str | None = None,
    **how: Any,
) -> Iterator[harness.InProcess]:
    """A worker over a server that works while the block runs, and leaves in good order after it."""
    with harness.working(dsn, *handlers, config=config, backend=served.backend(dsn), **how) as worker:
        yield worker


def drain(
    served: Served,
    *handlers: Callable[..., Any] | TaskSpec,
    config: WorkerConfig | None = None,
    dsn: str | None = None,
    **how: Any,
) -> int | None:
    """Work over a server until nothing is due, and answer the exit code."""
    return harness.drain(dsn, *handlers, config=config, backend=served.backend(dsn), **how)
