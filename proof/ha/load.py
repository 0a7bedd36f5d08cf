"""The load of a scenario: workers and producers on every way to the database, and servers where wanted."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from proof.ha.addresses import SERVERS
from proof.ha.ground import BIN, HaDatabase, Way
from proof.ha.processes import Processes, is_open, wait_for
from proof.ha.programs import ROOT, SOURCES, Programs

RATE: Final = 8
"""Jobs a second of each producer."""

CONCURRENCY: Final = 8
N_EACH: Final = 1_000_000
LISTEN_SECONDS_MAX: Final = 60.0


class Load:
    """Real processes, each with its log in the folder of the run."""

    def __init__(self, folder: Path, programs: Programs, ground: HaDatabase, first: int) -> None:
        self.folder = folder
        self.ground = ground
        self.first = first
        self.acks = folder / "acks.jsonl"
        self.notes = folder / "notes.jsonl"
        self.workers: list[str] = []
        self.producers: list[str] = []
        self.servers: list[str] = []
        self.exits: dict[str, int | str] = {}
        self._processes = Processes(folder, programs)

    def start(self, *, server: bool) -> None:
        if server:
            self._serve()
        for name, way in self.ground.workers.items():
            self._work(name, way)
        for name, (way, how) in self.ground.producers.items():
            self._produce(name, way, ["proof.ha.produce", name, self._next_n(), RATE, how, self.acks])

    def _work(self, name: str, way: Way, *words: object) -> None:
        self.workers.append(name)
        command = [BIN / "faultline", "worker", "proof.ha.shop:app", "--name", name, "--log", "json"]
        self._start(name, way, [*command, "--concurrency", CONCURRENCY, *words])

    def _produce(self, name: str, way: Way, words: list[object], **env: str) -> None:
        self.producers.append(name)
        self._start(name, way, [sys.executable, "-m", *words], **env)

    def _serve(self) -> None:
        """Two replicas before the same database, a worker over gRPC and a producer over HTTP."""
        code, said = self.ground.faultline(
            "--quiet", "keys", "create", f"ha-{self.first}", "--scope", "admin"
        )
        if code:
            raise RuntimeError(f"faultline keys create: {said}")
        key = {"FAULTLINE_API_KEY": said.strip().splitlines()[-1]}
        for number, port in enumerate(SERVERS, 1):
            self.servers.append(f"server-{number}")
            listen = ["--http", f"127.0.0.1:{port}", "--grpc", f"127.0.0.1:{port + 1}", "--log", "json"]
            self._start(f"server-{number}", self.ground.main, [BIN / "faultline", "server", *listen])
        wait_for(_servers_listen, LISTEN_SECONDS_MAX, "both replicas listen")
        replicas = ",".join(f"grpc://127.0.0.1:{port + 1}" for port in SERVERS)
        self.workers.append("remote")
        command = [BIN / "faultline", "worker", "proof.ha.shop:app", "--name", "remote", "--log", "json"]
        options = ["--concurrency", CONCURRENCY, "--server", replicas, "--dsn", self.ground.main.dsn]
        self._start("remote", self.ground.main, [*command, *options], **key)
        urls = [f"http://127.0.0.1:{port}" for port in SERVERS]
        words = ["proof.ha.produce_http", "p-http", self._next_n(), RATE, self.acks, *urls]
        self._produce("p-http", self.ground.main, words, **key)

    def _next_n(self) -> int:
        return self.first + len(self.producers) * N_EACH

    def _start(self, name: str, way: Way, command: list[object], **env: str) -> None:
        ours = {
            "FAULTLINE_DSN": way.dsn, "FAULTLINE_POOLER": way.pooler, "FAULTLINE_LOG": "info",
            "HA_WHO": name, "HA_NOTES": str(self.notes), "PYTHONPATH": SOURCES,
        }  # fmt: skip
        self._processes.start(name, command, {**ours, **env}, cwd=ROOT)

    def stop_producers(self) -> None:
        self.exits |= self._processes.stop(*self.producers)

    def stop_all(self) -> None:
        self.stop_producers()
        self.exits |= self._processes.stop(*self.workers)
        self.exits |= self._processes.stop(*self.servers)


def _servers_listen() -> bool:
    """Whether every port of the replicas is open: a worker whose servers are all away ends at once."""
    return all(is_open("127.0.0.1", each) for port in SERVERS for each in (port, port + 1))


@contextmanager
def under_load(load: Load, *, server: bool) -> Iterator[Load]:
    """Everything runs inside the block, and nothing after it."""
    try:
        load.start(server=server)
        yield load
    finally:
        load.stop_all()
