"""A crew of processes, each with a database of its own, that share the work out among them."""

import multiprocessing
import queue
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from tempfile import gettempdir

from faultline.embedded import EmbeddedServer
from proof.explorer.exploring import Tally, explore, hunt
from proof.explorer.mutants import MUTANTS
from proof.explorer.scenarios import SCENARIOS
from proof.explorer.scenarios.sizes import ORDERS
from proof.explorer.stage import ExplorerDatabase, altered, prepare

TEMPLATE = "explorer_template"
TOLD_EVERY_ORDERS = 25

# No data here outlives the run; durability is tested by other suites.
SETTINGS = {
    "full_page_writes": "off", "wal_level": "minimal", "max_wal_senders": "0", "max_wal_size": "4GB",
    "autovacuum": "off", "jit": "off", "track_commit_timestamp": "on", "deadlock_timeout": "60s",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of work: the orders of a scenario that begin with these turns, perhaps of a mutant."""

    scenario: str
    prefix: tuple[str, ...] = ()
    mutant: str = ""

    @property
    def weight(self) -> int:
        return ORDERS.get(self.scenario, 1000) // len(SCENARIOS[self.scenario].sessions)


@dataclass(frozen=True, slots=True)
class News:
    """What a process tells of its part: more orders played, or the whole tally at its end."""

    part: Part
    orders: int
    tally: Tally | None = None
    seconds: float = 0.0
    functions: tuple[str, ...] = ()
    """The shipped functions that were played in another form: with a stop in them, or broken."""
    trouble: str = ""


def parts_of(names: Sequence[str]) -> list[Part]:
    """The work in pieces, the largest first: then no process has a large one left at the end."""
    parts = [Part(name, (who,)) for name in names for who in SCENARIOS[name].sessions]
    startable = [part for part in parts if part.prefix[0] not in SCENARIOS[part.scenario].follows]
    return sorted(startable, key=lambda part: -part.weight)


@contextmanager
def server() -> Iterator[EmbeddedServer]:
    """A PostgreSQL for one run, without fsync, in memory where there is some, with a prepared database."""
    memory = Path("/dev/shm")
    folder = memory if memory.is_dir() else Path(gettempdir())
    place = folder / f"faultline-explorer-{time.time_ns()}"
    with EmbeddedServer.open(place, settings=SETTINGS, fsync=False, keep=False) as ours:
        ours.create_database(TEMPLATE)
        prepare(ours.dsn(TEMPLATE))
        yield ours


@dataclass
class ExplorerProcesses:
    """Some processes that work through a list of parts, and what they tell."""

    server: EmbeddedServer
    parts: Sequence[Part]
    size: int
    _members: list[BaseProcess] = field(default_factory=list)

    def news(self) -> Iterator[News]:
        """Set them to work; everything they tell, until all of it is done."""
        context = multiprocessing.get_context("spawn")
        todo: Queue[Part | None] = context.Queue()
        told: Queue[News] = context.Queue()
        for part in [*self.parts, *[None] * self.size]:
            todo.put(part)
        for number in range(self.size):
            name = f"explorer_{number}"
            self.server.drop_database(name)
            self.server.create_database(name, TEMPLATE)
            args = (self.server.dsn(name), todo, told)
            self._members.append(context.Process(target=_work, args=args, daemon=True))
            self._members[-1].start()
        try:
            yield from self._listen(told)
        finally:
            self._dismiss()

    def _listen(self, told: "Queue[News]") -> Iterator[News]:
        left = len(self.parts)
        while left:
            try:
                news = told.get(timeout=1)
            except queue.Empty:
                if not any(member.is_alive() for member in self._members):
                    raise RuntimeError(
                        "every process of the explorer has ended before its work was done"
                    ) from None
                continue
            if news.trouble:
                raise RuntimeError(f"{news.part.scenario} {news.part.mutant}: {news.trouble}")
            left -= news.tally is not None
            yield news

    def _dismiss(self) -> None:
        for member in self._members:
            member.terminate()
            member.join()


def _work(dsn: str, todo: "Queue[Part | None]", told: "Queue[News]") -> None:
    """What each process does: part after part, on its own stage."""
    with ExplorerDatabase(dsn) as stage:
        while (part := todo.get()) is not None:
            try:
                _explore(dsn, stage, part, told)
            except Exception as error:
                told.put(News(part, 0, trouble=f"{type(error).__name__}: {error}"))
                raise


def _explore(dsn: str, stage: ExplorerDatabase, part: Part, told: "Queue[News]") -> None:
    began, last, tally = time.monotonic(), 0, Tally()
    scenario, mutant = SCENARIOS[part.scenario], MUTANTS.get(part.mutant)
    with altered(dsn, mutant.edits if mutant else (), scenario.stops) as functions:
        for tally in (
            hunt(stage, scenario, mutant.breaks) if mutant else explore(stage, scenario, part.prefix)
        ):
            if tally.orders - last >= TOLD_EVERY_ORDERS:
                told.put(News(part, tally.orders - last))
                last = tally.orders
    stage.break_off()
    told.put(News(part, tally.orders - last, tally, time.monotonic() - began, functions))
