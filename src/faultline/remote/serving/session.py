"""A session: one worker's stream. It holds nothing that the database does not know."""

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import grpc
import psycopg

from faultline.access import Caller
from faultline.errors import DatabaseError, FaultlineError
from faultline.remote.serving.bell import Waiter
from faultline.remote.serving.cargo import Load, patience
from faultline.remote.serving.desk import Desk, trouble_of
from faultline.remote.serving.gate import CALL, Context, Gate, counting_refusals
from faultline.remote.serving.granting import Granted, in_parts, named, nothing
from faultline.remote.serving.problems import MALFORMED, TOO_LARGE, TOO_MANY, TOO_SLOW, TurnedAway
from faultline.remote.serving.receiving import Place
from faultline.remote.serving.rights import Rights
from faultline.remote.serving.settling import TROUBLE, read
from faultline.remote.serving.unparsed import LARGE_BYTES, LIST_BYTES_MAX, Unparsed
from faultline.rpc.v1 import worker_pb2
from faultline.server.turnstile import VITAL
from faultline.store import calls
from faultline.store.turns import taking

log = logging.getLogger("faultline.remote")

PART_SHARE: Final = 0.9
"""How much of a message assignments may fill: the rest is for what is around them."""

HANG_UP_SECONDS: Final = 1.0
"""A stream whose connection was closed is over before; no status can be sent while a message is under way."""

GIVEN_MAX: Final = 20_000

ROUTES: Final = {kind: f"Workers/Session {kind}" for kind in ("ask", "beat", "results")}
"""How the metrics name a session's messages."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message on its way, and what it answers."""

    message: worker_pb2.ToWorker
    kind: str = ""
    load: Load | None = None
    """Room that is free again once it is written, or never will be."""

    @property
    def jobs(self) -> Sequence[worker_pb2.Job]:
        """Those that go back if it never goes out."""
        return self.message.assignments.jobs


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message that was read, and the place that a large one takes while it is held."""

    message: worker_pb2.FromWorker
    place: Place | None

    def let_go(self) -> None:
        """It is done with, or never will be."""
        if self.place is not None:
            self.place.release()


class Session:
    """Reads in one task, answers in many, writes in one: what could not be written is known."""

    def __init__(self, desk: Desk, gate: Gate, context: Context, spawn: Callable[..., Any]) -> None:
        self.desk = desk
        self.gate = gate
        self.context = context
        self.spawn = spawn
        self.worker = 0
        self.leaving = False
        """True once no more jobs are given out here."""
        self.gone = False
        self.opened_at = time.monotonic()
        self._queues: dict[str, None] = {}
        """Those that Hello named, in its order."""
        self._lease = self._timeout = timedelta(0)
        self._unanswered: Counter[str] = Counter()
        self._waiters: dict[int, Waiter] = {}
        self._in: asyncio.Queue[Incoming | None] = asyncio.Queue(desk.config.unanswered_max)
        """What was read, apart from pings: those are answered whatever it waits for."""
        self._out: asyncio.Queue[Outgoing | Exception | None] = asyncio.Queue()
        self._answers: set[asyncio.Task[None]] = set()
        self._wakes: set[str] = set()
        self._deaf = False
        self._given: dict[int, tuple[int, bytes]] = {}
        """Of each job that was given out here its token and claim."""

    async def run(self, caller: Caller) -> None:
        """Serve until the worker leaves, or the stream is gone."""
        self.rights = Rights(self.desk.store, caller)
        work = (self._listen(), self._heed(), self._look_at_the_key())
        parts = [asyncio.create_task(part) for part in work]
        try:
            await self._write()
        finally:
            self.gone = True
            for part in parts:
                part.cancel()
            self.desk.bell.subscribers.discard(self._heard)
            self._let_go()
            self._give_back_what_is_left()
            while not self._in.empty():
                if (unheard := self._in.get_nowait()) is not None:
                    unheard.let_go()

    # what goes out

    async def _write(self) -> None:
        while await self._write_one():
            pass

    async def _write_one(self) -> bool:
        """Write the next message; False when there is none to come.

        On its own, since a loop would hold the last message, a mebibyte of jobs, until the next one.
        """
        going = await self._out.get()
        if going is None:
            return False
        if isinstance(going, Exception):
            raise going
        try:
            async with self._patience(going):
                await self.context.write(going.message)
        except TimeoutError:
            self.gone = True
            self._undelivered(going)
            self._give_back_what_is_left()
            self.gate.connections.hang_up(self.context.peer())
            await asyncio.sleep(HANG_UP_SECONDS)
            raise TurnedAway(TOO_SLOW, "the jobs that were asked for are not being read") from None
        except BaseException:
            self._undelivered(going)
            raise
        if going.load is not None:
            going.load.release()
        if going.kind == "wake":
            self._wakes.discard(going.message.notice.wake)
        elif going.kind:
            self._unanswered[going.kind] -= 1
        return True

    def _patience(self, going: Outgoing) -> contextlib.AbstractAsyncContextManager[Any]:
        seconds = patience(self._lease.total_seconds()) if going.jobs else None
        if going.load is None or seconds is None:
            return asyncio.timeout(seconds)
        return going.load.being_written(seconds)

    def _say(self, message: worker_pb2.ToWorker, kind: str = "", load: Load | None = None) -> None:
        going = Outgoing(message, kind, load)
        if self.gone:
            self._undelivered(going)
        else:
            self._out.put_nowait(going)

    def _undelivered(self, going: Outgoing) -> None:
        """Claimed for a worker that is no longer there: given back at once, not only by its lease's end."""
        if going.jobs:
            self.spawn(self.desk.assigner.hand_back(named(going.jobs)))
        if going.load is not None:
            going.load.release()

    def _give_back_what_is_left(self) -> None:
        while not self._out.empty():
            going = self._out.get_nowait()
            if isinstance(going, Outgoing):
                self._undelivered(going)

    # what comes in

    async def _listen(self) -> None:
        try:
            await self._greet()
            while await self._read_one():
                pass
            await self._in.put(None)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._out.put_nowait(error)

    async def _read_one(self) -> bool:
        """Read the next message; False behind the last. On its own, since a loop would hold what it read."""
        came: Unparsed | Any = await self.context.read()
        if came is grpc.aio.EOF:
            return False
        place = self.gate.place(self.rights.caller) if len(came) > LARGE_BYTES else None
        try:
            if place is not None:  # the next is read once this one has its place
                await place.take()
            message = came.parsed()
            said = message.WhichOneof("message")
            if said != "results":
                _check_length(came)
            if said == "ping":
                self._pong(message.ping.id)
            else:
                await self._in.put(Incoming(message, place))
                place = None
            return True
        finally:
            if place is not None:
                place.release()

    async def _heed(self) -> None:
        """Take in what was read, in its order; each may wait for the database to know the key."""
        try:
            while await self._heed_one():
                pass
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._out.put_nowait(error)

    async def _heed_one(self) -> bool:
        """Take in the next message; False when the session ends with it."""
        coming = await self._in.get()
        if coming is None:
            await self._end(said_goodbye=False)
            return False
        try:
            await self._know_the_caller()
            said = coming.message.WhichOneof("message")
            await self.gate.pace(self.rights.caller, VITAL if said in ("beat", "results") else CALL)
            if said == "goodbye":
                await self._end(said_goodbye=True)
                return False
            if said == "results":
                self._answer("results", self._settle(coming.message.results), coming)
                return True
            self._hear(coming.message)
        except BaseException:
            coming.let_go()
            raise
        coming.let_go()
        return True

    async def _greet(self) -> None:
        first = await self._first()
        if first is grpc.aio.EOF:
            raise TurnedAway(MALFORMED, "a session begins with Hello")
        _check_length(first)
        message = first.parsed()
        if message.WhichOneof("message") != "hello":
            raise TurnedAway(MALFORMED, "a session begins with Hello")
        hello = message.hello
        welcome = await self.desk.welcome(hello, self.rights.caller)
        self.worker = welcome.worker
        self._lease, self._timeout = (
            self.desk.lease_of(hello.lease_ms),
            self.desk.timeout_of(hello.timeout_ms),
        )
        self._say(worker_pb2.ToWorker(welcome=welcome))
        self._queues = dict.fromkeys(hello.queues)
        if hello.wakes:
            self.desk.bell.subscribers.add(self._heard)
            self._heard("" if self.desk.bell.listening else None)

    async def _first(self) -> Any:
        seconds = self.desk.config.hello_seconds_max
        try:
            async with asyncio.timeout(seconds):
                return await self.context.read()
        except TimeoutError:
            raise TurnedAway(TOO_SLOW, f"no Hello came in {seconds:g} s; open a session to use it") from None

    def _hear(self, message: worker_pb2.FromWorker) -> None:
        match message.WhichOneof("message"):
            case "ask":
                self._answer("ask", self._assign(message.ask))
            case "withdraw":
                if waiter := self._waiters.get(message.withdraw.id):
                    waiter.end()
            case "beat":
                self._answer("beat", self._beat(message.beat))
            case "hello":
                raise TurnedAway(MALFORMED, "Hello was said already; open another session for another worker")
            case _:
                raise TurnedAway(MALFORMED, "a message without anything in it, or of a newer protocol")

    def _answer(
        self, kind: str, answering: Coroutine[Any, Any, None], coming: Incoming | None = None
    ) -> None:
        """In a task of its own: a beat must not wait behind a thousand results."""
        if self._unanswered[kind] >= self.desk.config.unanswered_max:
            answering.close()
            raise TurnedAway(
                TOO_MANY, f"{self._unanswered[kind]} messages of kind {kind} wait for their answer"
            )
        self._unanswered[kind] += 1
        task: asyncio.Task[None] = self.spawn(self._guarded(kind, answering, coming))
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _guarded(
        self, kind: str, answering: Coroutine[Any, Any, None], coming: Incoming | None
    ) -> None:
        try:
            with self.gate.door.serving(ROUTES[kind]) as served, counting_refusals(served):
                await answering
        except Exception as error:
            self._out.put_nowait(error)
        finally:
            if coming is not None:
                coming.let_go()

    # the answers

    def _pong(self, id: int) -> None:
        """Answer before the key and the database are asked: a worker wants to know whether we are awake."""
        if self._unanswered["ping"] >= self.desk.config.unanswered_max:
            raise TurnedAway(TOO_MANY, f"{self._unanswered['ping']} pings wait for their answer")
        self._unanswered["ping"] += 1
        self._say(worker_pb2.ToWorker(pong=worker_pb2.Pong(id=id)), "ping")

    async def _assign(self, ask: worker_pb2.Ask) -> None:
        caller, id = self.rights.caller, ask.id
        wish = self.desk.wish(
            ask, self.desk.queues_of(list(self._queues), caller), self._lease, self._timeout, self.worker,
            caller,
        )  # fmt: skip
        del ask  # the wish holds what is needed; an Ask may wait for long
        if id in self._waiters:
            raise TurnedAway(MALFORMED, f"Ask {id} waits for its answer already; give each its own id")
        if self.leaving:
            self._assigned(id, nothing())
            return
        waiter = self._waiters[id] = Waiter(wish.queues, wish.except_tasks)
        try:
            granted = await self.desk.assigner.assign(wish, waiter)
        except TROUBLE as trouble:
            answer = worker_pb2.Assignments(id=id, trouble=trouble_of(trouble))
            self._say(worker_pb2.ToWorker(assignments=answer), "ask")
            return
        finally:
            del self._waiters[id]
        self._assigned(id, granted)

    def _assigned(self, id: int, granted: Granted) -> None:
        self.rights.learn(granted.rows)
        self._remember(granted)
        granted.answer.assignments.id = id
        parts = in_parts(granted.answer, int(self.desk.config.message_bytes_max * PART_SHARE))
        self._unanswered["ask"] += len(parts) - 1
        for part in parts[:-1]:
            self._say(part, "ask")
        self._say(parts[-1], "ask", granted.load)

    async def _beat(self, beat: worker_pb2.Beat) -> None:
        with taking("vital"):
            beaten = await self.desk.beat(beat, self._lease, self.worker, self.rights)
        self._say(worker_pb2.ToWorker(beaten=beaten), "beat")

    async def _settle(self, results: worker_pb2.Results) -> None:
        items = read(results, self.desk.config.items_max)
        with taking("vital"):
            settled = await self.desk.settling.settle(results.id, items, self.worker, self.rights)
        for item in items:
            self._given.pop(item.job_id, None)
        self._say(worker_pb2.ToWorker(settled=settled), "results")

    # news

    def _heard(self, queue: str | None) -> None:
        """A wake-up, told once until it is on its way: a slow reader gets one, not a thousand.

        Each session hears of every queue: looked for in the lists of 400 sessions, news took 40 ms each.
        """
        if queue is None:
            if not self._deaf:
                self._deaf = True
                self._say(worker_pb2.ToWorker(notice=worker_pb2.Notice(deaf=True)))
            return
        self._deaf = False
        if (not queue or queue in self._queues) and queue not in self._wakes:
            self._wakes.add(queue)
            self._say(worker_pb2.ToWorker(notice=worker_pb2.Notice(wake=queue)), "wake")

    def _remember(self, granted: Granted) -> None:
        """What was given out, so that a cancelled job's worker hears of it before its next beat."""
        if len(self._given) > GIVEN_MAX:
            self._given.clear()
        self._given.update((row[0], (row[1], granted.claim)) for row in granted.rows)

    def gave(self, job_id: int) -> bool:
        return job_id in self._given

    def cancelled(self, job_id: int) -> None:
        """A job was cancelled; if it was given out here, its worker is told."""
        if given := self._given.pop(job_id, None):
            proof = worker_pb2.Proof(job_id=job_id, token=given[0], claim=given[1])
            self._say(worker_pb2.ToWorker(notice=worker_pb2.Notice(cancel=proof)))

    def drain(self, grace: float) -> None:
        """Tell the worker to go elsewhere; it gets no more jobs here."""
        if not self.leaving:
            self.leaving = True
            news = worker_pb2.Notice(drain=worker_pb2.Drain(grace_ms=int(grace * 1000)))
            self._say(worker_pb2.ToWorker(notice=news))
            self._let_go()

    def _let_go(self) -> None:
        for waiter in self._waiters.values():
            waiter.end()

    # the caller

    async def _know_the_caller(self) -> None:
        """The key may have been revoked since; the database may be away, and then nobody knows better."""
        with contextlib.suppress(DatabaseError, psycopg.Error):
            caller = await self.gate.known(self.context)
            caller.require("work")
            self.rights.caller = caller

    async def _look_at_the_key(self) -> None:
        try:
            while True:
                await asyncio.sleep(self.desk.config.key_check_seconds)
                await self._know_the_caller()
                if time.monotonic() - self.opened_at > self.desk.config.connection_seconds_max:
                    self.drain(self.desk.config.connection_grace_seconds)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self._out.put_nowait(error)

    async def _end(self, said_goodbye: bool) -> None:
        """Answer what was asked, and end the stream."""
        self.leaving = True
        self._let_go()
        if self._answers:
            await asyncio.wait(list(self._answers))
        if said_goodbye:
            with contextlib.suppress(FaultlineError):
                await self.desk.store.run(calls.worker_stopped(self.worker))
        self._out.put_nowait(None)


def _check_length(came: Unparsed) -> None:
    """Only Results are long."""
    if len(came) > LIST_BYTES_MAX:
        raise TurnedAway(
            TOO_LARGE, f"all but Results have at most {LIST_BYTES_MAX} bytes; this message has {len(came)}"
        )
