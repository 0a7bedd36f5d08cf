"""`faultline worker --processes N`: one process supervises, the others work."""

import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from faultline.cli.exit_codes import exit_code_of, line_of
from faultline.cli.serve.worker import WorkerOptions, run_worker, set_up_logging
from faultline.cli.terminal import Terminal
from faultline.supervisor.channel import SupervisorChannel
from faultline.supervisor.supervisor import GroupPlan, Supervisor
from faultline.text.durations import format_duration

if TYPE_CHECKING:
    from faultline.cli.serve.metrics_endpoint import ScrapedGroup


def supervise(terminal: Terminal, wanted: WorkerOptions, processes: int) -> int:
    """Run so many workers, each in a process of its own; answers the worst of their exit codes."""
    if wanted.jobs is not None:
        raise click.UsageError(
            "--jobs counts the jobs of one worker, and several cannot stop together after an exact number; "
            "leave out --processes, or use --until-empty"
        )
    config = wanted.config()  # invalid settings are refused before any process starts
    wanted.address()
    set_up_logging(terminal, wanted, terminal.settings())
    if wanted.metrics is None:
        return asyncio.run(_run(_plan(terminal, wanted, processes, config.grace)))
    from faultline.cli.serve.metrics_endpoint import group_scraped

    with group_scraped(wanted.metrics) as group:
        plan = _plan(terminal, wanted, processes, config.grace, group.folder)
        return asyncio.run(_run(plan, group))


def _plan(
    terminal: Terminal, wanted: WorkerOptions, processes: int, grace: timedelta, figures: Path | None = None
) -> GroupPlan:
    return GroupPlan(
        processes=processes,
        name=wanted.name or f"{socket.gethostname()}:{os.getpid()}",
        command=partial(command_of, terminal, wanted, figures=figures),
        dsn=terminal.dsn,
        grace=grace,
        until_empty=wanted.until_empty,
    )


async def _run(plan: GroupPlan, group: "ScrapedGroup | None" = None) -> int:
    supervisor = Supervisor(plan)
    if group is not None:
        group.living = lambda: {child.process.pid for child in list(supervisor.children.values())}
    return await supervisor.run()


def command_of(
    terminal: Terminal, wanted: WorkerOptions, name: str, figures: Path | None = None
) -> list[str]:
    """The command line of one worker. Without the DSN: that goes over the socket, where no `ps` shows it."""
    # -P: a file in the current directory with the name of one of our modules must not win over it.
    return [
        sys.executable, "-P", "-m", "faultline", "worker", *_flags(terminal, wanted),
        *([] if figures is None else ["--figures", str(figures)]), "--name", name, "--supervised",
    ]  # fmt: skip


def _flags(terminal: Terminal, wanted: WorkerOptions) -> Iterator[str]:
    yield wanted.app
    for queues in wanted.queues:
        yield from ("--queues", queues)
    for flag, value in {
        "--concurrency": wanted.concurrency, "--threads": wanted.threads, "--children": wanted.children,
        "--log": wanted.log, "--server": wanted.server, "--key-file": wanted.key_file,
        "--tls-ca": wanted.tls_ca, "--tls-cert": wanted.tls_cert, "--tls-key": wanted.tls_key,
    }.items():  # fmt: skip
        if value is not None:
            yield from (flag, str(value))
    for flag, duration in {"--lease": wanted.lease, "--grace": wanted.grace}.items():
        if duration is not None:
            yield from (flag, format_duration(duration))
    for flag, wished in {
        "--until-empty": wanted.until_empty, "--quiet": terminal.quiet, "--no-color": terminal.no_color,
    }.items():  # fmt: skip
        if wished:
            yield flag


def be_supervised(terminal: Terminal, wanted: WorkerOptions, fd: int, figures: Path | None = None) -> int:
    """Work under the supervisor at the other end of a descriptor; the supervisor reports errors."""
    try:
        link = SupervisorChannel.take(fd)
    except (OSError, EOFError, ValueError) as error:
        raise click.UsageError("--supervised is for the workers that --processes starts") from error
    terminal.dsn = link.order.dsn
    try:
        if figures is None:
            return run_worker(terminal, wanted, link)
        from faultline.cli.serve.metrics_endpoint import figures_written

        with figures_written(figures):
            return run_worker(terminal, wanted, link)
    except Exception as error:
        if os.environ.get("FAULTLINE_DEBUG") == "1":
            raise
        link.report_failed(type(error).__name__, line_of(error))
        raise click.exceptions.Exit(exit_code_of(error)) from error
