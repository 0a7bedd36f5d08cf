"""`faultline worker`: claim jobs of an app and run them."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faultline.cli.app_loading import load_app
from faultline.cli.options import (
    ADDRESS,
    COUNT,
    DURATION,
    PROCESSES,
    CliCommand,
    told,
    warn_of_mistyped,
    whole,
)
from faultline.cli.terminal import Terminal
from faultline.config import Settings, WorkerConfig
from faultline.remote.server_address import ServerAddress
from faultline.runtime import event_loop
from faultline.telemetry import configure_logging
from faultline.tracing.opentelemetry import instrument_if_configured
from faultline.worker.options import queues_of, tell_left_out, warn_of_queues, worker_config

if TYPE_CHECKING:
    from faultline.app import Faultline
    from faultline.metrics.endpoint import MetricsAddress as Listening
    from faultline.supervisor.channel import SupervisorChannel

log = logging.getLogger("faultline.worker")


def settings_beside(terminal: Terminal, app: "Faultline") -> Settings:
    """For a worker that works over a server: a DSN is not needed, and used for job.complete if given."""
    if terminal.dsn is not None:
        app.connect_to(terminal.dsn)
    return app.settings


def settings_for(terminal: Terminal, app: "Faultline") -> Settings:
    """The app's own settings, unless --dsn or a running `faultline dev` says otherwise."""
    if terminal.dsn is None and app.settings.dsn is not None:
        return app.settings
    dsn = terminal.settings().require_dsn()
    app.connect_to(dsn)  # its handlers enqueue where its worker works
    return app.settings


@dataclass(frozen=True, kw_only=True)
class WorkerOptions:
    """The worker that was asked for on the command line."""

    app: str
    queues: tuple[str, ...]
    concurrency: int | None
    threads: int | None
    children: int | None
    lease: timedelta | None
    grace: timedelta | None
    name: str | None
    until_empty: bool
    jobs: int | None
    log: str | None
    metrics: "Listening | None" = None
    server: str | None = None
    key_file: Path | None = None
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None

    def config(self, app: "Faultline | None" = None) -> WorkerConfig:
        """How it works; without the app, as far as the command line says."""
        named = self.queues or (queues_of(app.registry) if app is not None else ())
        return worker_config(named, self.concurrency, self.threads, self.children, self.lease, self.grace)

    def address(self) -> ServerAddress | None:
        """The server it works for; None where that is the database itself."""
        return ServerAddress.find(
            self.server, self.key_file, ca=self.tls_ca, cert=self.tls_cert, cert_key=self.tls_key
        )


@click.command(cls=CliCommand)
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
@click.option(
    "--processes", type=PROCESSES, default=1, show_default=True,
    help="Worker processes, under a supervisor; the limits above are each one's own.",
)  # fmt: skip
@click.option("--lease", type=DURATION, help="How long a lease lasts unrenewed. [default: 15s]")
@click.option("--grace", type=DURATION, help="How long to let jobs finish when told to stop. [default: 25s]")
@click.option("--name", help="What this worker is called in the ledger. [default: host:pid]")
@click.option("--until-empty", is_flag=True, help="Stop when nothing is due any more.")
@click.option("--jobs", type=whole(1, 2**63 - 1), help="Stop after so many jobs.")
@click.option(
    "--log",
    type=click.Choice(["json", "lines"]),
    help="How log lines look. [default: lines on a terminal, else json]",
)
@click.option(
    "--metrics", type=ADDRESS, metavar="[HOST:]PORT",
    help="Serve this worker's figures to Prometheus at /metrics; on loopback unless a host is named.",
)  # fmt: skip
@click.option("--figures", type=click.Path(path_type=Path), hidden=True)
@click.option(
    "--server", metavar="URL,...",
    help="Work for a server, or its replicas, not the database: grpc://host:port, or grpcs:// with TLS.",
)  # fmt: skip
@click.option(
    "--key-file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="The server's API key, alone in a file. [default: the key in FAULTLINE_API_KEY]",
)  # fmt: skip
@click.option("--tls-ca", metavar="FILE", help="CA of the server's certificate. [default: the system's]")
@click.option("--tls-cert", metavar="FILE", help="A certificate of our own, for a server that asks for one.")
@click.option("--tls-key", metavar="FILE", help="The private key of that certificate.")
@click.option("--supervised", type=int, hidden=True)
@told
def command(
    terminal: Terminal, /, processes: int, supervised: int | None, figures: Path | None, **asked: Any
) -> int:
    """Run a worker for an app, with its pacemaker and a watchdog beside it.

    SIGTERM or Ctrl-C lets running jobs finish within the grace; a second one gives them back at once.
    Exits with 0 when all it held is settled, 1 when something could not be, 3 when its threads are all stuck.
    With --processes the worst of these counts, and a worker process that dies is started again.

    With --server it needs no database: only job.complete() does, and has one if --dsn is given as well.
    """
    wanted = WorkerOptions(**asked)
    if processes > 1 or supervised is not None:
        from faultline.cli.serve import processes as group  # a single worker need not load it

        if supervised is not None:
            return group.be_supervised(terminal, wanted, supervised, figures)
        return group.supervise(terminal, wanted, processes)
    if wanted.metrics is None:
        return run_worker(terminal, wanted)
    from faultline.cli.serve.metrics_endpoint import scraped

    with scraped(wanted.metrics):
        return run_worker(terminal, wanted)


def run_worker(terminal: Terminal, wanted: WorkerOptions, link: "SupervisorChannel | None" = None) -> int:
    """Load the app and work in this process, on its own or linked to a supervisor."""
    from faultline.runtime.run_worker import backend_for, work

    app = load_app(wanted.app)
    instrument_if_configured()
    config = wanted.config(app)
    address = wanted.address()
    settings = settings_for(terminal, app) if address is None else settings_beside(terminal, app)
    set_up_logging(terminal, wanted, settings)
    if not len(app.registry) and (link is None or link.order.number == 1):
        terminal.remark(f"{wanted.app} has no tasks: is the module that defines them imported?")
    if link is None or link.order.number == 1:
        if terminal.is_watched:
            tasks = ", ".join(sorted(spec.name for spec in app.registry)) or "none"
            terminal.remark(f"works on {', '.join(config.queues)}; tasks: {tasks}. Ctrl-C stops it")
        warn_of_mistyped(log)
        warn_of_queues(app.registry, config.queues)
        tell_left_out(app.registry, config.queues)
    return event_loop.run(
        work(
            app.registry,
            settings,
            config,
            name=wanted.name,
            until_empty=wanted.until_empty,
            stop_after=wanted.jobs,
            signals=True,
            link=link,
            backend=None if address is None else backend_for(address, settings),
        )
    )


def set_up_logging(terminal: Terminal, wanted: WorkerOptions, settings: Settings) -> None:
    configure_logging(
        json=None if wanted.log is None else wanted.log == "json",
        level="warning" if terminal.quiet else settings.log,
    )
