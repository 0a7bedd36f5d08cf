"""The worker's side of one child: give it a job, answer it while it works, hear how it went."""

import asyncio
import logging
from dataclasses import replace
from typing import cast

from faultline.errors import HandlerDied, LeaseLost
from faultline.outcome import Crashed, Outcome
from faultline.worker.attempt import Attempt, StopReason
from faultline.worker.heartbeat.lease_table import LeaseTable
from faultline.worker.processes.child_process import ChildProcess, described, signature
from faultline.worker.processes.child_protocol import (
    AskTimeLeft,
    AttemptBegan,
    AttemptEnded,
    AttemptStart,
    ChildGreeting,
    ChildMessage,
    ChildReady,
    ChildUnable,
    FromChild,
    StopAttempt,
    TimeLeft,
    TransactionPhase,
    ending_of,
    framed,
    frames_from_child,
    lease_lost,
)
from faultline.worker.processes.import_path import ImportPath

log = logging.getLogger("faultline.worker")

LOOK_EVERY = 0.5
"""A child's end closes its line, unless a process it forked holds it open: so we look, too."""

LAST_WORDS_WAIT = 0.1
"""How long to read on after a child has gone: what it said before may still be on its way."""

STOP_WAIT = 0.5
"""How long a handler that was told to stop may take to do so before its process group is killed."""

IN_HURRY = (StopReason.TIMEOUT, StopReason.HELD_UP, StopReason.NOT_RENEWED)
"""Reasons to kill at once: the outcome has to be recorded before the lease ends, in a moment."""

LEAVE_WAIT = 5.0
"""How long an idle child may take to leave: to close its resources, and call its hooks."""

KILL_WAIT = 5.0
"""How long to wait for the end of a process that was killed: one that waits for a disk may take long."""

COMMIT_WAIT = 30.0
"""How long a handler that must stop may stay in its commit, which the database answers, before it is killed.

Longer than a connection takes to notice that its server is gone; after it the rows are asked.
"""


class ChildNotStarted(Exception):
    """The system has no process for us now, or ours ended before it had begun the job."""


class CannotRunHere(Exception):
    """No handler for this job in this child; nothing of the job has run."""


class ChildHandle(asyncio.Protocol):
    """One child, which runs one job at a time."""

    def __init__(self, process: ChildProcess, lease_table: LeaseTable) -> None:
        self.process = process
        self.lease_table = lease_table
        self.begun = 0
        self._broken = False
        self._killed_for: str | None = None
        self._attempt: Attempt | None = None
        self._known: frozenset[str] = frozenset()
        self._unable: dict[str, str] = {}
        self._began = False
        self._cannot: str | None = None
        loop = asyncio.get_running_loop()
        self._ready: asyncio.Future[None] = loop.create_future()
        self._ended: asyncio.Future[AttemptEnded | None] = loop.create_future()
        self._frames = frames_from_child()
        self._line: asyncio.Transport | None = None

    async def send_greeting(self, greeting: ChildGreeting) -> None:
        """Take up the line to it; it greets back when it has imported its handlers."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=self.process.line)
        self._known = frozenset(greeting.places)
        self._send(greeting)

    @property
    def fit(self) -> bool:
        """Whether another job may be given to it: it was not killed, and has not gone."""
        return not self._broken and self.process.exit_code is None

    async def run(self, attempt: Attempt, place: ImportPath | None = None) -> Outcome | LeaseLost | None:
        """Have one job run; HandlerDied if the child ends before the handler does.

        With a place it is a suspect, whose handler the child has to find first.
        """
        if not self._ready.done():
            await asyncio.wait((self._ready,))
        await self._check_able(attempt, place)
        self._attempt, self._ended = attempt, asyncio.get_running_loop().create_future()
        self._began, self._cannot = False, None
        self.begun += 1
        trace = None if attempt.span is None else attempt.span.trace
        self.lease_table.name_child(attempt.slot, attempt.generation, self.process.pid, attempt.timeout_at)
        self._send(
            AttemptStart.of(self.begun, attempt.lease, attempt.job, attempt.args, attempt.retry, place, trace)
        )
        try:
            await self._until_ended(attempt)
        except asyncio.CancelledError:
            gently = attempt.told_at is not None and attempt.stopping not in IN_HURRY
            await self._stop(STOP_WAIT if gently else 0.0)
            raise
        finally:
            self._attempt = None
            self.lease_table.forget_child(attempt.slot)
        return await self._what_came_of(attempt, place)

    async def _what_came_of(self, attempt: Attempt, place: ImportPath | None) -> Outcome | LeaseLost | None:
        told = self._ended.result() if self._ended.done() else None
        if self._cannot is not None:
            raise CannotRunHere(self._cannot)
        if told is not None:
            attempt.afterword = told.afterword
            return self._blamed(attempt, ending_of(told, attempt.lease))
        how, mark = await self._how_it_died()
        if not self._began and self._alone and place is not None:
            raise CannotRunHere(f"a child process {how} while it imported task {attempt.job.task}")
        if not self._began:  # of something that ran there before, or was done to it
            raise ChildNotStarted(f"a child process {how} before it had begun task {attempt.job.task}")
        died = f"the process of job {attempt.job.id} ({attempt.job.task}) {how}"
        raise HandlerDied(died, mark, alone=self._alone)

    @property
    def _alone(self) -> bool:
        """Whether nothing ran here before: then no earlier job can have left anything behind to die of."""
        return self.begun == 1

    def _blamed(self, attempt: Attempt, outcome: Outcome | LeaseLost | None) -> Outcome | LeaseLost | None:
        """A crash that the child lived to tell, of its memory: it is fit for no other job after that."""
        if not isinstance(outcome, Crashed):
            return outcome
        self._broken = True
        most = attempt.spec.max_crashes if attempt.spec is not None else outcome.max_crashes
        return replace(outcome, alone=self._alone, max_crashes=most)

    async def _check_able(self, attempt: Attempt, place: ImportPath | None) -> None:
        if self._broken:
            how, _ = await self._how_it_died()
            if place is not None:
                raise ChildNotStarted(f"a child process {how} as it was started")
            raise CannotRunHere(
                f"a child process {how} while it imported its handlers, {attempt.job.task} among them"
            )
        if place is not None:
            return
        if attempt.job.task not in self._known:
            raise CannotRunHere(
                f"task {attempt.job.task} was defined after this worker had started; start it again"
            )
        if unable := self._unable.get(attempt.job.task):
            raise CannotRunHere(unable)

    async def _until_ended(self, attempt: Attempt) -> None:
        patience = COMMIT_WAIT
        while not self._ended.done():
            await asyncio.wait((self._ended,), timeout=LOOK_EVERY)
            if self.process.exit_code is not None:
                await asyncio.wait((self._ended,), timeout=LAST_WORDS_WAIT)
                return
            if attempt.stopping is not None:
                patience -= LOOK_EVERY
                if patience <= 0:
                    self.kill("its commit was not answered")

    async def _stop(self, wait: float) -> None:
        """Tell the handler; if it does not end by itself in a moment, end it."""
        self._send(StopAttempt())
        try:
            await asyncio.wait((self._ended,), timeout=wait)
        finally:
            if not self._ended.done() or self._ended.result() is None:
                self.kill("it was told to stop, and did not")

    async def _how_it_died(self) -> tuple[str, str]:
        """In words, and in short."""
        if not await self.process.gone_within(LAST_WORDS_WAIT):
            self.kill("it closed its line to the worker")
        code = await self.end()
        if code is None or self._killed_for is not None:
            return f"was killed: {self._killed_for}", f"its worker: {self._killed_for}"
        starved = self.process.out_of_memory
        return described(code, starved), signature(code, starved)

    def kill(self, why: str) -> None:
        self._broken = True
        self._killed_for = self._killed_for or why
        self.process.kill()

    async def end(self) -> int | None:
        """Let an idle child leave, kill any other; answers its exit code, or None if it will not go."""
        idle = self.fit and self._ready.done() and (self.begun == 0 or self._ended.done())
        self._broken = True
        (self._line or self.process.line).close()
        if idle:
            await self.process.gone_within(LEAVE_WAIT)
        self.process.kill()
        if not await self.process.gone_within(KILL_WAIT):
            log.error("process %d would not be killed; it is left to itself", self.process.pid)
        return self.process.exit_code

    # what it says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._line = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                self._receive(message)
        except ValueError as garbage:  # foreign bytes on its line: nothing it says can be trusted now
            log.error("process %d spoke nonsense and is killed: %s", self.process.pid, garbage)
            self.kill("it spoke nonsense to the worker")

    def connection_lost(self, exc: Exception | None) -> None:
        self._broken = True
        for awaited in (self._ready, self._ended):
            if not awaited.done():
                awaited.set_result(None)

    def _receive(self, message: FromChild) -> None:
        match message:
            case ChildReady(unable):
                self._unable = unable
                if not self._ready.done():
                    self._ready.set_result(None)
            case AttemptBegan(turn) if turn == self.begun:
                self._began = True
                if self._attempt is not None:
                    self._attempt.is_excused = False
            case ChildUnable(turn, why) if turn == self.begun and not self._ended.done():
                self._cannot = why
                self._ended.set_result(None)
            case AskTimeLeft(turn):
                self._send(self._left(self._attempt if turn == self.begun else None))
            case TransactionPhase(turn) if turn == self.begun and self._attempt is not None:
                _take_down(self._attempt, message)
            case AttemptEnded(turn) if turn == self.begun and not self._ended.done():
                self._ended.set_result(message)
            case _:
                pass  # of a job that is no longer asked about

    def _left(self, attempt: Attempt | None) -> TimeLeft:
        if attempt is None:  # a thread that its handler left behind
            return TimeLeft(0.0, StopReason.LEAVING)
        return TimeLeft(attempt.seconds_left(self.lease_table), attempt.stopping)

    def _send(self, message: ChildMessage) -> None:
        if self._line is not None and not self._line.is_closing():
            self._line.write(framed(message))


def _take_down(attempt: Attempt, now: TransactionPhase) -> None:
    attempt.fenced, attempt.phase, attempt.offer = now.fenced, now.phase, now.offer
    attempt.lost = None if now.lost is None else lease_lost(attempt.lease, now.lost)
