"""`faultline worker`: claim jobs of an app and run them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

from faultline.cli import loops
from faultline.cli.loading import load_app
from faultline.cli.options import COUNT, DURATION, Command, told, whole
from faultline.cli.terminal import Terminal
from faultline.config import Settings, WorkerConfig, read_queues
from faultline.telemetry import configure_logging

if TYPE_CHECKING:
    from faultline.client import Faultline


def worker_config(
    queues: Sequence[str],
    concurrency: int | None = None,
    threads: int | None = None,
    children: int | None = None,
    lease: timedelta | None = None,
    grace: timedelta | None = None,
) -> WorkerConfig:
    """The configuration that was asked for; what was not named stays at its default."""
    words = [word.strip() for listed in queues for word in listed.split(",") if word.strip()]
    asked: dict[str, Any] = {
        "queues": read_queues(words) or None,
        "jobs_max": concurrency,
        "threads_max": threads,
        "children_max": children,
        "lease_for": lease,
        "grace": grace,
    }
    return WorkerConfig(**{name: value for name, value in asked.items() if value is not None})


def queues_of(app: "Faultline") -> list[str]:
    """Every queue the app's tasks name, and `default`: what a worker serves when it is told nothing else."""
    return sorted({spec.queue for spec in app.registry} | {"default"})


def settings_for(terminal: Terminal, app: "Faultline") -> Settings:
    """The app's own settings, unless --dsn or a running `faultline dev` says otherwise."""
    if terminal.dsn is None and app.settings.dsn is not None:
        return app.settings
    dsn = terminal.settings().require_dsn()
    app.connect_to(dsn)  # its handlers enqueue where its worker works
    return app.settings


@click.command(cls=Command)
@click.argument("app", metavar="MODULE:APP")
@click.option(
    "-q", "--queues", multiple=True, metavar="NAME[=N],...",
    help="Queues to work on, `billing=5` for at most five at once; may be repeated. "
    "[default: every queue the app's tasks name, and `default`]",
)  # fmt: skip
@click.option("--concurrency", type=COUNT, help="Jobs at once. [default: 10]")
@click.option("--threads", type=COUNT, help="Threads for plain handlers. [default: as concurrency]")
@click.option(
    "--children", type=COUNT, help='Child processes for handlers with run="process". [default: one a CPU]'
)
@click.option("--lease", type=DURATION, help="How long a lease lasts unrenewed. [default: 15s]")
@click.option("--grace", type=DURATION, help="How long to let jobs finish when told to stop. [default: 25s]")
@click.option("--name", help="What this worker is called in the ledger. [default: host:pid]")
@click.option("--until-empty", is_flag=True, help="Stop when the queues are empty.")
@click.option("--jobs", type=whole(1, 2**63 - 1), help="Stop after so many jobs.")
@click.option(
    "--log",
    type=click.Choice(["json", "lines"]),
    help="How log lines look. [default: lines on a terminal, else json]",
)
@told
def command(
    terminal: Terminal,
    app: str,
    queues: tuple[str, ...],
    concurrency: int | None,
    threads: int | None,
    children: int | None,
    lease: timedelta | None,
    grace: timedelta | None,
    name: str | None,
    until_empty: bool,
    jobs: int | None,
    log: str | None,
) -> int:
    """Run a worker for an app, with its pacemaker and a watchdog beside it.

    SIGTERM or Ctrl-C lets running jobs finish within the grace; a second one gives them back at once.
    Exits with 0 when all it held is settled, 1 when something could not be, 3 when its threads are all stuck.
    """
    from faultline.running import work

    found = load_app(app)
    config = worker_config(queues or queues_of(found), concurrency, threads, children, lease, grace)
    settings = settings_for(terminal, found)
    configure_logging(
        json=None if log is None else log == "json", level="warning" if terminal.quiet else settings.log
    )
    if not len(found.registry):
        terminal.remark(f"{app} has no tasks: is the module that defines them imported?")
    return loops.run(
        work(
            found.registry,
            settings,
            config,
            name=name,
            until_empty=until_empty,
            stop_after=jobs,
            signals=True,
        )
    )
