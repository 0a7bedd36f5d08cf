"""`manage.py faultline_worker`: run the project's tasks."""

import asyncio
import logging
import sys
import threading
from argparse import ArgumentParser, ArgumentTypeError
from datetime import timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils import autoreload

from faultline.bounds import counted
from faultline.errors import FaultlineError
from faultline.integrations.django.conf import database_alias
from faultline.integrations.django.project import app
from faultline.integrations.django.task_backend import run
from faultline.telemetry import configure_logging
from faultline.text.durations import parse_duration

GRACE_OF_RELOAD: Final = 5.0
"""Seconds that jobs have to finish when a file has changed; what is not done then is given back."""


def duration(text: str) -> timedelta:
    """15s, 1m30s and the like, for argparse."""
    try:
        return parse_duration(text)
    except (FaultlineError, ValueError) as error:
        raise ArgumentTypeError(str(error)) from error


def refuse_in_transaction(alias: str) -> None:
    """A worker has connections of its own: it would wait for locks of a transaction that waits for it."""
    if connections[alias].in_atomic_block:
        raise CommandError(
            f"a transaction is open on the database {alias!r}, as in a TestCase: the worker would not see "
            "its jobs, and would wait for its locks for ever. In tests use TransactionTestCase; elsewhere "
            "call faultline_worker outside transaction.atomic()"
        )


class Command(BaseCommand):
    """Claims jobs and runs them until Ctrl-C or SIGTERM."""

    help = "Runs the tasks of this project: claims their jobs, and runs them until Ctrl-C or SIGTERM."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """The options of `faultline worker`, as far as a project needs them."""
        add = parser.add_argument
        add("-q", "--queues", action="append", metavar="NAME[=N],...", help=(
            "Queues to work on, billing=5 for at most five at once; may be repeated. Without it every queue "
            "that a task names, and default."
        ))  # fmt: skip
        add("--concurrency", type=int, help="Jobs at once; 10 by default.")
        add("--threads", type=int, help="Threads for plain tasks; as many as concurrency by default.")
        add(
            "--children", type=int, help='Child processes for tasks with run="process"; one a CPU by default.'
        )
        add("--lease", type=duration, help="How long a lease lasts unrenewed; 15s by default.")
        add("--grace", type=duration, help="How long to let jobs finish when told to stop; 25s by default.")
        add("--name", help="What this worker is called in the ledger; host:pid by default.")
        add("--until-empty", action="store_true", help="Stop when nothing is due any more.")
        add("--jobs", type=int, dest="stop_after", help="Stop after so many jobs.")
        add("--autoreload", action="store_true", help="Start again when a file changes; for development.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the worker, in a thread beside the reloader or on its own."""
        refuse_in_transaction(database_alias())
        wanted: Any = {name: options.get(name) for name in OPTIONS}
        if wanted["queues"] is None:
            del wanted["queues"]
        wanted["name"] = run.name_worker(wanted["name"])
        if not logging.getLogger("faultline").hasHandlers():
            configure_logging(level="warning" if options["verbosity"] == 0 else app.settings.log)
        if options["autoreload"]:
            self._reloading(wanted)
            return
        self._announce(options["verbosity"])
        try:
            code = app.run_worker(**wanted)
        except FaultlineError as error:
            raise CommandError(str(error)) from error
        if code:
            sys.exit(code)

    def _announce(self, verbosity: int) -> None:
        from faultline.integrations.django import process  # imports the tasks

        if verbosity >= 1:
            count = counted(len(process.app.registry), "task")
            self.stdout.write(f"faultline: {count}, database {database_alias()}. Ctrl-C stops it")

    def _reloading(self, wanted: dict[str, Any]) -> None:
        """The reloader has the main thread, and with it the signals."""
        worker = ThreadedWorker(wanted)

        def work() -> None:
            self._announce(1)
            worker.run()

        try:
            autoreload.run_with_reloader(work)
        finally:
            worker.stop()


class ThreadedWorker:
    """A worker in an event loop of its own, in a thread that the reloader has started."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[int] | None = None
        self._done = threading.Event()

    def run(self) -> None:
        """Work until stopped."""
        try:
            asyncio.run(self._run())
        except asyncio.CancelledError:
            pass
        finally:
            self._done.set()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(app.arun_worker(**self._options))
        await self._task

    def stop(self) -> None:
        """Let jobs finish, for a moment; then give them back."""
        for _ in range(2):
            if self._loop is None or self._task is None or self._done.is_set():
                return
            self._loop.call_soon_threadsafe(self._task.cancel)
            self._done.wait(GRACE_OF_RELOAD)


OPTIONS: Final = (
    "queues", "concurrency", "threads", "children", "lease", "grace", "name", "until_empty", "stop_after",
)  # fmt: skip
