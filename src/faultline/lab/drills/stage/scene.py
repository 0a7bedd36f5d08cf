"""One run of a drill: its job, its workers, its barriers, and what was seen of them."""

import contextlib
import secrets
import signal
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

import psycopg

from faultline.lab.drills.processes.server_process import (
    COMMITTED,
    GATHER,
    SERVER,
    DrillServer,
    committed,
    make_key,
)
from faultline.lab.drills.processes.worker_processes import DrillProcess, ProcessKeeper
from faultline.lab.drills.stage import barriers, stdin_barriers
from faultline.lab.drills.stage.drill_database import LEASE, DrillDatabase
from faultline.lab.drills.stage.pauses import PausePoint
from faultline.lab.drills.stage.wait_until import wait_until
from faultline.lab.drills.view.trace import DRILL, Trace, TraceSign
from faultline.lab.drills.workloads import remit, transfer
from faultline.store import calls
from faultline.store.driver.connect import connect
from faultline.store.pool import Store

AMOUNT = 100

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """A database in which a drill came to an end, the SQL file that judges it, the jobs it tells of."""

    title: str
    conn: psycopg.Connection[Any]
    verdict: str
    chapters: Mapping[int, str]


class Scene:
    """Holds everything one run needs. Leaving the block ends every process that was started in it."""

    def __init__(
        self, stage: DrillDatabase, trace: Trace, lease: timedelta = LEASE, *, through_server: bool = False
    ) -> None:
        self.stage = stage
        self.through_server = through_server
        """Whether its workers know a server only, and not the database."""
        self._served: DrillServer | None = None
        self._closed: set[str] = set()
        self.trace = trace
        self.lease = lease
        self.queue = f"{stage.queue}.{secrets.token_hex(2)}"
        """Of this run alone: what another run left behind is not done here."""
        self.job = 0
        self.jobs: list[int] = []
        self.chapters: dict[int, str] = {}
        """The jobs whose stories are worth telling, each with its title; else it is the story of `job`."""
        self.worlds: list[World] = []
        """The databases to be judged, where a drill ends in several; else it is the one it began in."""
        self.about: dict[str, Any] = {}
        """What else the verdict has to be told."""
        self._stack = contextlib.ExitStack()
        self._workers: list[DrillProcess] = []

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.keeper = ProcessKeeper()
            stack.callback(self.keeper.close)
            self.connect()
            stack.callback(self._hang_up)
            stack.callback(self._end_workers)
            if self.through_server:
                self._served = self._serve()
            self._stack = stack.pop_all()
        return self

    def connect(self, dsn: str | None = None) -> None:
        """Speak and listen on fresh connections; also after the server took the old ones with it."""
        self.conn = connect(dsn or self.stage.dsn)
        self._ear = barriers.CommitListener(dsn or self.stage.dsn, self.stage.schema, self.trace)

    def enter(self, block: AbstractContextManager[T]) -> T:
        """Enter a block that is left with this run, after its verdict."""
        return self._stack.enter_context(block)

    def _hang_up(self) -> None:
        with contextlib.suppress(psycopg.OperationalError):
            self._ear.close(self.conn)
        self.conn.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def enqueue(self) -> int:
        """Put a job in the queue of this run; the last one is the job that the run is about."""
        task = remit if self.through_server else transfer
        new = task.using(queue=self.queue).new(AMOUNT)
        self.job = Store.run_in(self.conn, calls.enqueue(new))
        self.jobs.append(self.job)
        self.trace.tell(
            TraceSign(DRILL, "enqueued", {"job_id": self.job, "task": new.task, "queue": new.queue})
        )
        return self.job

    def worker(
        self,
        who: str,
        *,
        gate: str | None = None,
        failpoints: str = "",
        jobs_max: int = 2,
        pauses: Sequence[PausePoint] = (),
        queue: str | None = None,
        dsn: str | None = None,
        late: str | None = None,
    ) -> DrillProcess:
        """Start a worker process; with a gate, it comes no further than that barrier until it is opened.

        Through a server, `late` is a barrier that its first result meets on the way.
        """
        order: dict[str, Any] = {
            "queue": queue or self.queue, "gate": gate,
            "jobs_max": jobs_max, "lease_seconds": self.lease.total_seconds(), "pauses": pauses,
        }  # fmt: skip
        if self._served is not None:
            order |= self._served.order() | {"closed": sorted(self._closed), "late": late}
        else:
            order["dsn"] = dsn or self.stage.dsn
        worker = DrillProcess(who, order, self.trace, self.keeper, failpoints)
        self._workers.append(worker)
        return worker

    def client(self, who: str, **order: Any) -> DrillProcess:
        """Start a client process, which submits as its order says and then leaves."""
        order = {"dsn": self.stage.dsn, "queue": self.queue, **order}
        client = DrillProcess(who, order, self.trace, self.keeper, program="client_main")
        self._workers.append(client)
        return client

    def close(self, barrier: str) -> None:
        """Close this barrier."""
        self._closed.add(barrier)
        barriers.close(self.conn, barrier)

    def open(self, barrier: str) -> None:
        """Open this barrier."""
        self._closed.discard(barrier)
        barriers.open(self.conn, barrier)
        if self.through_server:
            for worker in self._workers:
                worker.say(stdin_barriers.word(barrier))

    def wait_until(
        self, question: str, about: Sequence[Any], what: str, conn: psycopg.Connection[Any] | None = None
    ) -> None:
        """Return when the database answers with a row."""
        wait_until(conn or self.conn, question, about, what)

    def see(self, who: str, what: str, note: str | None = None, *, job: int | None = None) -> None:
        """Write down what was done to a process, in the database and in the trace; the note tells it."""
        about = job or self.job
        self.conn.execute(
            "insert into sightings (job_id, who, what, note) values (%s, %s, %s, %s)",
            [about, who, what, note],
        )
        self.trace.tell(TraceSign(DRILL, what, {"worker": who, "job_id": about}))

    def see_lease_of(self, who: str, *, job: int | None = None) -> None:
        """Write down until when the job is leased. Its holder is frozen or dead, so this moment stays."""
        self.conn.execute(
            "insert into sightings (job_id, who, what, at)"
            " select job.id, %s, 'lease_ends', job.lease_until from faultline.get_job(%s) as job"
            " where job.lease_until is not null",
            [who, job or self.job],
        )

    def stop(self, *workers: DrillProcess) -> None:
        """Ask workers to leave in good order, all at once, and wait until they have."""
        for worker in workers:
            worker.send(signal.SIGTERM)
        for worker in workers:
            worker.wait_exit()

    def wait_committed(self, who: str) -> None:
        """Wait until a job of this run was committed by this worker, which its own transaction says.

        Through a server there is none, and the ledger is asked.
        """
        if self.through_server:
            self.wait_until(COMMITTED, [self.job, who], f"{who} commits")
            ((token,),) = self.conn.execute(COMMITTED, [self.job, who]).fetchall()
            self.trace.tell(committed(who, token))
        self.trace.wait_for(
            lambda sign: sign.what == "committed" and sign.facts["worker"] == who, 30, f"{who} commits"
        )

    def gather(self) -> None:
        """Write down as effects what was committed through a server, so that one verdict judges both."""
        if self.through_server:
            self.conn.execute(GATHER, [self.jobs])

    def _serve(self) -> DrillServer:
        """Start a server before the database, and have a key made for its workers."""
        key = make_key(self.conn)
        server = DrillProcess(
            SERVER, {"dsn": self.stage.dsn, "tick_seconds": self.lease.total_seconds() / 4}, self.trace,
            self.keeper, program="server_main",
        )  # fmt: skip
        self._workers.append(server)
        return DrillServer(self.trace.wait_for_event(SERVER, "serving").facts["url"], key)

    def _end_workers(self) -> None:
        for worker in self._workers:
            worker.end()


def wait_for_job(scene: Scene, who: str, what: str, job: int) -> TraceSign:
    """Wait until a process has said this about a job."""
    return scene.trace.wait_for(
        lambda sign: (sign.who, sign.what, sign.facts.get("job_id")) == (who, what, job),
        60,
        f"{what} of job {job} by {who}",
    )
