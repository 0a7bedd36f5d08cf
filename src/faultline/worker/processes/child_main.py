"""A child: a process beside a worker that runs handlers with run="process", and suspects, one at a time.

Started as `python -m faultline.worker.processes.child_main FD`; everything else comes over that line.
Handlers run in the
main thread, a second thread listens to the worker.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Coroutine
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

from faultline import failpoints
from faultline.errors import ConfigError, LeaseLost
from faultline.extensions import AppExtensions
from faultline.outcome import Outcome
from faultline.task import TaskSpec
from faultline.telemetry import configure_logging, current, describe_error, install_context, tracing
from faultline.worker.execution.outcomes import failed_by, raised, returned
from faultline.worker.handlers import life
from faultline.worker.handlers.handler_calls import HandlerCalls, is_direct
from faultline.worker.handlers.injected_transactions import InjectedTransactions
from faultline.worker.heartbeat.pacemaker import go_with_parent
from faultline.worker.processes import import_path
from faultline.worker.processes.child_attempt import ChildAttempt, ConnectionPools
from faultline.worker.processes.child_environment import name_database
from faultline.worker.processes.child_protocol import (
    AttemptBegan,
    AttemptStart,
    ChildGreeting,
    ChildMessage,
    ChildReady,
    ChildUnable,
    StopAttempt,
    TimeLeft,
    ToChild,
    ended,
    framed,
    frames_to_child,
)

READ_BYTES = 65_536

EXIT_UNHEARD = 87
"""What a child leaves behind that could not tell how its handler ended."""


class ChildMain:
    """Runs what the worker asks for, and tells how it went."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._speaking = threading.Lock()
        self._asking = threading.Lock()
        self._heard: SimpleQueue[ToChild | None] = SimpleQueue()
        self._answers: SimpleQueue[TimeLeft] = SimpleQueue()
        self._specs: dict[str, TaskSpec] = {}
        self._loop = asyncio.Runner()
        self._child_attempt: ChildAttempt | None = None
        self._task: asyncio.Task[Any] | None = None
        self._calls = HandlerCalls(InjectedTransactions(None))
        self._started: AppExtensions | None = None

    def run(self) -> None:
        """Listen and work until the worker hangs up."""
        threading.Thread(target=self._listen, name="faultline-child", daemon=True).start()
        greeting = self._heard.get()
        if not isinstance(greeting, ChildGreeting):
            return
        if greeting.parent != os.getppid():
            return  # it died before we could ask to die with it
        self._prepare(greeting)
        loans = ConnectionPools(greeting.dsn, greeting.pooler, self._loop.get_loop())
        while isinstance(begin := self._heard.get(), AttemptStart):
            self._work(begin, loans)
        if self._started is not None:
            self._loop.run(life.stop(self._started.hooks, self._calls))
        loans.close(self._loop)
        self._loop.close()

    def send(self, message: ChildMessage) -> None:
        with self._speaking:
            self._line.sendall(framed(message))

    def ask(self, message: ChildMessage) -> TimeLeft:
        """A question to the worker; if it is frozen, so are we."""
        with self._asking:  # a handler may have threads, and each wants its own answer
            self.send(message)
            return self._answers.get()

    def _prepare(self, greeting: ChildGreeting) -> None:
        """Be like the worker: its import path, its database, its way of logging; then import the handlers."""
        sys.path[:] = greeting.path
        self._calls = HandlerCalls(InjectedTransactions(greeting.dsn))
        if greeting.dsn is not None:
            name_database(greeting.dsn, greeting.pooler)
        if greeting.log_json is not None:
            configure_logging(json=greeting.log_json, level=greeting.log_level)
        failpoints.arm_from_environment()
        failpoints.worker = greeting.parent
        install_context()
        found = {task: self._find(place, task) for task, place in greeting.places.items()}
        self.send(ChildReady({task: why for task, why in found.items() if why is not None}))

    def _find(self, place: import_path.ImportPath, task: str) -> str | None:
        """Import a handler; answers why it cannot be done."""
        import_path.importing = True
        try:
            self._specs[task] = import_path.find(place, task)
        except BaseException as error:
            return f"a child process could not import task {task}: {describe_error(error)}"
        finally:
            import_path.importing = False
        return None

    def _listen(self) -> None:
        frames = frames_to_child()
        with contextlib.suppress(OSError):
            while data := self._line.recv(READ_BYTES):
                for message in frames.feed(data):
                    self._receive(message)
        if self._child_attempt is not None:
            os.killpg(os.getpgrp(), signal.SIGKILL)  # the worker is gone: nothing of this can commit
        self._heard.put(None)

    def _receive(self, message: ToChild) -> None:
        match message:
            case TimeLeft():
                self._answers.put(message)
            case StopAttempt():
                self._stop()
            case _:
                self._heard.put(message)

    def _stop(self) -> None:
        child_attempt, task = self._child_attempt, self._task
        if child_attempt is not None:
            child_attempt.job._lose()
        if task is not None:
            self._loop.get_loop().call_soon_threadsafe(task.cancel)

    def _work(self, begin: AttemptStart, loans: ConnectionPools) -> None:
        """One job, from its first word to its outcome."""
        if not self._is_able(begin):
            return
        spec = self._specs[begin.task]
        self._child_attempt = child_attempt = ChildAttempt.begin(begin, spec, self, loans)
        failpoints.failpoint("child.begun")
        try:
            told = ended(begin.turn, self._attempt(child_attempt, spec), child_attempt.afterword)
        except Exception as error:  # an outcome of the user's own making that cannot be told
            told = ended(begin.turn, failed_by(error))
        failpoints.failpoint("child.ended")
        child_attempt.close()
        self._child_attempt = None
        _flush()
        try:
            self.send(told)
        except OSError:  # the worker has gone, or the handler has closed what it did not open
            os._exit(EXIT_UNHEARD)

    def _is_able(self, begin: AttemptStart) -> bool:
        """Find a suspect's handler, then report the begin: a child that dies before has not run the job."""
        place = None if begin.task in self._specs else begin.place
        if place is not None and (why := self._find(place, begin.task)) is not None:
            self.send(ChildUnable(begin.turn, why))
            return False
        if (why := self._start(self._specs[begin.task])) is not None:
            self.send(ChildUnable(begin.turn, why))
            return False
        self.send(AttemptBegan(begin.turn))
        return True

    def _start(self, spec: TaskSpec) -> str | None:
        """The startup hooks of the app, before its first job here; answers why they failed."""
        if self._started is None:
            try:
                self._loop.run(life.start(spec.extensions.hooks))
            except ConfigError as error:
                return f"in a child process {error}"
            self._started = spec.extensions
        return None

    def _attempt(self, child_attempt: ChildAttempt, spec: TaskSpec) -> Outcome | LeaseLost | None:
        context = copy_context()
        context.run(current.set, child_attempt.job)
        context.run(tracing.resume, child_attempt.trace)
        try:
            kwargs = spec.codec.decode(child_attempt.args)
            args = (child_attempt.job,) if spec.takes_job else ()
            if spec.is_async:
                call = (
                    spec.handler(*args, **kwargs)
                    if is_direct(spec)
                    else self._calls.acall(child_attempt.job, spec, kwargs)
                )
                value, error = self._loop.run(self._await(call), context=context)
                if error is not None:
                    raise error
            elif not is_direct(spec):
                value = context.run(self._calls.call, child_attempt.job, spec, kwargs)
            else:
                value = context.run(spec.handler, *args, **kwargs)
            return returned(child_attempt, value)
        except BaseException as error:
            return context.run(raised, child_attempt, error)

    async def _await(self, call: Coroutine[Any, Any, Any]) -> tuple[Any, BaseException | None]:
        """Run an async handler; what it raises is a value here, since sys.exit() would end the loop."""
        self._task = asyncio.current_task()
        try:
            return await call, None
        except BaseException as error:
            return None, error
        finally:
            self._task = None


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _keep_signals() -> None:
    """A signal to all of a service is for the worker, which lets its jobs finish.

    Not ignored, which programs that a handler starts would inherit; and not kept by a fork.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    def as_usual() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    os.register_at_fork(after_in_child=as_usual)


def main() -> None:
    go_with_parent()
    _keep_signals()
    line = socket.socket(fileno=int(sys.argv[1]))
    line.set_inheritable(False)  # a program that a handler starts must not hold it open
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
    ChildMain(line).run()


if __name__ == "__main__":
    main()
