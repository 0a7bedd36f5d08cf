"""WorkerSession: the stream of one worker. All its state can be rebuilt from the database."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final

import psycopg

from faultline.errors import DatabaseError, FaultlineError
from faultline.rpc.v1 import worker_pb2
from faultline.server.auth import Caller
from faultline.server.grpc.guard.call_guard import CALL, CallGuard, Context, counting_refusals
from faultline.server.grpc.sessions.job_messages import PART_SHARE, Granted, in_parts, nothing
from faultline.server.grpc.sessions.queue_scope import QueueScope
from faultline.server.grpc.sessions.result_settler import TROUBLE, read
from faultline.server.grpc.sessions.session_reader import IncomingMessage, SessionReader
from faultline.server.grpc.sessions.session_writer import SessionWriter
from faultline.server.grpc.sessions.wait_queue import Waiter
from faultline.server.grpc.sessions.worker_service import WorkerService, trouble_of
from faultline.server.problems import MALFORMED, RequestRefused
from faultline.server.throttling.rate_limit import VITAL
from faultline.store import calls
from faultline.store.connection_turns import taking
from faultline.store.rows import AT

GIVEN_MAX: Final = 20_000
"""The assigned jobs that a session remembers, to announce their cancels."""

ROUTES: Final = {kind: f"Workers/Session {kind}" for kind in ("ask", "beat", "results")}
"""The names of a session's messages in the metrics."""


class WorkerSession:
    """Reads in one task, answers in many, writes in one."""

    def __init__(
        self,
        service: WorkerService,
        guard: CallGuard,
        context: Context,
        spawn: Callable[..., Any],
        caller: Caller,
    ) -> None:
        self.service = service
        self.guard = guard
        self.context = context
        self.spawn = spawn
        self.rights = QueueScope(service.store, caller)
        self.worker = 0
        self.leaving = False
        """True once no more jobs are assigned here."""
        self.opened_at = time.monotonic()
        self._queues: dict[str, None] = {}
        """The queues of Hello, in its order."""
        self._lease = self._timeout = timedelta(0)
        self._waiters: dict[int, Waiter] = {}
        self._writer = SessionWriter(service, guard, context, spawn)
        self._reader = SessionReader(guard, service.config, context, self._writer, self.rights)
        self._answers: set[asyncio.Task[None]] = set()
        self._deaf = False
        self._given: dict[int, tuple[int, bytes]] = {}
        """The token and claim of each job that was assigned here."""

    async def run(self) -> None:
        """Serve until the worker leaves, or the stream is gone."""
        work = (self._read(), self._handle(), self._look_at_the_key())
        parts = [asyncio.create_task(self._failing_the_session(part)) for part in work]
        try:
            await self._writer.run()
        finally:
            for part in parts:
                part.cancel()
            self.service.wait_queue.subscribers.discard(self._heard)
            self._end_waits()
            self._writer.close()
            self._reader.drop_rest()

    async def _failing_the_session(self, part: Coroutine[Any, Any, None]) -> None:
        try:
            await part
        except Exception as error:
            self._writer.fail(error)

    # Messages in.

    async def _read(self) -> None:
        hello = await self._reader.hello()
        welcome = await self.service.welcome(hello, self.rights.caller)
        self.worker = welcome.worker
        self._lease = self._writer.lease = self.service.lease_of(hello.lease_ms)
        self._timeout = self.service.timeout_of(hello.timeout_ms)
        self._writer.send(worker_pb2.ToWorker(welcome=welcome))
        self._queues = dict.fromkeys(hello.queues)
        if hello.wakes:
            self.service.wait_queue.subscribers.add(self._heard)
            self._heard("" if self.service.wait_queue.listening else None)
        await self._reader.run()

    async def _handle(self) -> None:
        """Handle messages in their order; each may wait for the check of its key by the database."""
        while await self._handle_one():
            pass

    async def _handle_one(self) -> bool:
        """Handle the next message; False when the session ends with it."""
        coming = await self._reader.next()
        if coming is None:
            await self._end(said_goodbye=False)
            return False
        try:
            await self._know_the_caller()
            said = coming.message.WhichOneof("message")
            await self.guard.pace(self.rights.caller, VITAL if said in ("beat", "results") else CALL)
            if said == "goodbye":
                await self._end(said_goodbye=True)
                return False
            if said == "results":
                self._answer("results", self._settle(coming.message.results), coming)
                return True
            self._dispatch(coming.message)
        except BaseException:
            coming.release()
            raise
        coming.release()
        return True

    def _dispatch(self, message: worker_pb2.FromWorker) -> None:
        match message.WhichOneof("message"):
            case "ask":
                self._answer("ask", self._assign(message.ask))
            case "withdraw":
                if waiter := self._waiters.get(message.withdraw.id):
                    waiter.end()
            case "beat":
                self._answer("beat", self._beat(message.beat))
            case "hello":
                raise RequestRefused(
                    MALFORMED, "Hello was said already; open another session for another worker"
                )
            case _:
                raise RequestRefused(MALFORMED, "a message without anything in it, or of a newer protocol")

    # Answers out.

    def _answer(
        self, kind: str, answering: Coroutine[Any, Any, None], coming: IncomingMessage | None = None
    ) -> None:
        """Answer in a task of its own: a beat must not wait behind a thousand results."""
        try:
            self._writer.owe(kind, f"messages of kind {kind}")
        except RequestRefused:
            answering.close()
            raise
        task: asyncio.Task[None] = self.spawn(self._counted(kind, answering, coming))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _counted(
        self, kind: str, answering: Coroutine[Any, Any, None], coming: IncomingMessage | None
    ) -> None:
        try:
            with self.guard.traffic.serving(ROUTES[kind]) as served, counting_refusals(served):
                await answering
        except Exception as error:
            self._writer.fail(error)
        finally:
            if coming is not None:
                coming.release()

    async def _assign(self, ask: worker_pb2.Ask) -> None:
        caller, id = self.rights.caller, ask.id
        wanted = self.service.job_request(
            ask, self.service.queues_of(list(self._queues), caller), self._lease, self._timeout, self.worker,
            caller,
        )  # fmt: skip
        del ask  # the job request holds all that is needed; an Ask may wait for long
        if id in self._waiters:
            raise RequestRefused(MALFORMED, f"Ask {id} waits for its answer already; give each its own id")
        if self.leaving:
            self._assigned(id, nothing())
            return
        waiter = self._waiters[id] = Waiter(
            wanted.queues, wanted.except_tasks, self.service.kinds.of(self.worker)
        )
        try:
            granted = await self.service.assigner.assign(wanted, waiter)
        except TROUBLE as trouble:
            answer = worker_pb2.Assignments(id=id, trouble=trouble_of(trouble))
            self._writer.send(worker_pb2.ToWorker(assignments=answer), "ask")
            return
        finally:
            del self._waiters[id]
        self._assigned(id, granted)

    def _assigned(self, id: int, granted: Granted) -> None:
        self.rights.learn(granted.rows)
        self._remember(granted)
        granted.answer.assignments.id = id
        parts = in_parts(granted.answer, int(self.service.config.message_bytes_max * PART_SHARE))
        self._writer.owe_parts("ask", len(parts) - 1)
        for part in parts[:-1]:
            self._writer.send(part, "ask")
        self._writer.send(parts[-1], "ask", granted.load)

    async def _beat(self, beat: worker_pb2.Beat) -> None:
        with taking("vital"):
            beaten = await self.service.beat(beat, self._lease, self.worker, self.rights)
        self._writer.send(worker_pb2.ToWorker(beaten=beaten), "beat")

    async def _settle(self, results: worker_pb2.Results) -> None:
        items = read(results, self.service.config.items_max)
        with taking("vital"):
            settled = await self.service.settling.settle(results.id, items, self.worker, self.rights)
        for item in items:
            self._given.pop(item.job_id, None)
        self._writer.send(worker_pb2.ToWorker(settled=settled), "results")

    # Notices.

    def _heard(self, queue: str | None) -> None:
        """Pass on a wake-up for one of its queues, "" for any, or that none are heard any more (None).

        Each session hears of every queue: with a search of the lists of 400 sessions, a wake-up took 40 ms.
        """
        if queue is None:
            if not self._deaf:
                self._deaf = True
                self._writer.send(worker_pb2.ToWorker(notice=worker_pb2.Notice(deaf=True)))
            return
        self._deaf = False
        if not queue or queue in self._queues:
            self._writer.wake(queue)

    def _remember(self, granted: Granted) -> None:
        """Note the assigned jobs, so that the worker of a cancelled job is told before its next beat."""
        if len(self._given) > GIVEN_MAX:
            self._given.clear()
        self._given.update((row[AT.id], (row[AT.token], granted.claim)) for row in granted.rows)

    def gave(self, job_id: int) -> bool:
        """Whether this session has assigned the job, as far as it remembers."""
        return job_id in self._given

    def cancelled(self, job_id: int) -> None:
        """A job was cancelled; if it was assigned here, its worker is told."""
        if given := self._given.pop(job_id, None):
            proof = worker_pb2.Proof(job_id=job_id, token=given[0], claim=given[1])
            self._writer.send(worker_pb2.ToWorker(notice=worker_pb2.Notice(cancel=proof)))

    def drain(self, grace: float) -> None:
        """Tell the worker to connect elsewhere; it gets no more jobs here."""
        if not self.leaving:
            self.leaving = True
            news = worker_pb2.Notice(drain=worker_pb2.Drain(grace_ms=int(grace * 1000)))
            self._writer.send(worker_pb2.ToWorker(notice=news))
            self._end_waits()

    def _end_waits(self) -> None:
        for waiter in self._waiters.values():
            waiter.end()

    # The caller.

    async def _know_the_caller(self) -> None:
        """Check whether the key was revoked; while the database is away, the last answer stays valid."""
        with contextlib.suppress(DatabaseError, psycopg.Error):
            caller = await self.guard.known(self.context)
            caller.require("work")
            self.rights.caller = caller

    async def _look_at_the_key(self) -> None:
        while True:
            await asyncio.sleep(self.service.config.key_check_seconds)
            await self._know_the_caller()
            if time.monotonic() - self.opened_at > self.service.config.connection_seconds_max:
                self.drain(self.service.config.connection_grace_seconds)

    async def _end(self, said_goodbye: bool) -> None:
        """Answer the open messages, and end the stream."""
        self.leaving = True
        self._end_waits()
        if self._answers:
            await asyncio.wait(list(self._answers))
        if said_goodbye:
            with contextlib.suppress(FaultlineError):
                await self.service.store.run(calls.worker_stopped(self.worker))
        self._writer.end()
