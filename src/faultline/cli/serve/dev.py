"""`faultline dev`: a database and a worker for an app, without preparation."""

import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import click
from psycopg.errors import DuplicateDatabase

from faultline.cli.app_loading import load_app
from faultline.cli.options import COUNT, CliCommand, refuse_a_dsn, told
from faultline.cli.serve.dev_server import DATABASE, FOLDER, noted_port
from faultline.cli.terminal import Terminal
from faultline.config import Settings
from faultline.embedded import EmbeddedServer
from faultline.errors import ServerFailed
from faultline.runtime import event_loop
from faultline.runtime.run_worker import work
from faultline.store.migrate import migrate
from faultline.telemetry import configure_logging
from faultline.worker.options import queues_of, tell_left_out, warn_of_queues, worker_config

LOOK_EVERY = 0.2


@click.command(cls=CliCommand)
@click.argument("app", metavar="[MODULE:APP]", required=False)
@click.option("--db-only", is_flag=True, help="The database alone: no app, no worker.")
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), default=FOLDER, show_default=True,
    help="Where the database lives; delete it to start again from nothing.",
)  # fmt: skip
@click.option("-q", "--queues", multiple=True, metavar="NAME[=N],...", help="As in `faultline worker`.")
@click.option("--concurrency", type=COUNT, help="Jobs at once. [default: 10]")
@told
def command(
    terminal: Terminal,
    app: str | None,
    db_only: bool,
    folder: Path,
    queues: tuple[str, ...],
    concurrency: int | None,
) -> int:
    """Start a private PostgreSQL in .faultline/, migrate it, and run a worker for an app.

    Its address is printed, and is the same at every start in one folder. Other commands run in that folder
    find the database by themselves, unless FAULTLINE_DSN names another. Ctrl-C stops worker and server; the
    data stays.
    """
    refuse_a_dsn(terminal, "dev")
    _check(app, db_only, queues, concurrency)
    before = noted_port(folder)
    with EmbeddedServer.open(folder) as server:
        _keep_out_of_git(folder)
        url = _prepared(server)
        elsewhere = (os.environ.get("FAULTLINE_DSN") or url) != url  # read before the app gets our DSN
        greet = partial(_greet, terminal, server, folder, url, elsewhere)
        if before not in (None, server.port):
            terminal.remark(
                f"port {before}, where this database listened before, is taken by another program: it is "
                f"{server.port} this time"
            )
        if app is None:
            return _serve(terminal, server, folder, greet)
        return _work(terminal, url, greet, app, queues, concurrency)


def _check(app: str | None, db_only: bool, queues: tuple[str, ...], concurrency: int | None) -> None:
    """Refuse invalid settings before a server is started."""
    if app is None and not db_only:
        raise click.UsageError(
            "Name your app as MODULE:APP, such as shop:app, or say --db-only for the database alone"
        )
    if db_only and (app is not None or queues or concurrency is not None):
        raise click.UsageError("--db-only starts no worker: leave MODULE:APP, --queues and --concurrency out")
    worker_config(queues, concurrency)


def _work(
    terminal: Terminal,
    url: str,
    greet: Callable[[], None],
    app: str,
    queues: tuple[str, ...],
    concurrency: int | None,
) -> int:
    os.environ["FAULTLINE_DSN"] = url  # before the app is imported, so that it and its children find it
    found = load_app(app)
    found.connect_to(url)
    config = worker_config(queues or queues_of(found.registry), concurrency)
    greet()
    tasks = ", ".join(sorted(spec.name for spec in found.registry)) or "none"
    terminal.say(f"Tasks: {tasks}. Works on {', '.join(config.queues)}. Ctrl-C stops worker and server.")
    _log_every_job()
    warn_of_queues(found.registry, config.queues)
    tell_left_out(found.registry, config.queues)
    return event_loop.run(work(found.registry, Settings.read(dsn=url), config, name="dev", signals=True))


def _serve(terminal: Terminal, server: EmbeddedServer, folder: Path, greet: Callable[[], None]) -> int:
    """Keep the server until told to stop, or until it ends by itself."""
    # A list and not an Event: the handler runs in the waiting thread, and may interrupt it while it holds
    # the Event's lock; the handler would then wait without end.
    told_to_stop: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda heard, _: told_to_stop.append(heard))
    greet()
    terminal.say(
        "No worker: `faultline worker MODULE:APP` in this folder starts one. Ctrl-C stops the server."
    )
    while not told_to_stop:
        time.sleep(LOOK_EVERY)
        if not told_to_stop and not server.is_running:
            raise ServerFailed(f"the PostgreSQL in {folder} has ended; its log is {folder / 'log'}")
    return 0


def _keep_out_of_git(folder: Path) -> None:
    """Keep the data folder out of git."""
    with suppress(OSError):
        (folder / ".gitignore").write_text("*\n")


def _prepared(server: EmbeddedServer) -> str:
    with suppress(DuplicateDatabase):
        server.create_database(DATABASE)
    migrate(server.dsn(DATABASE))
    return server.url(DATABASE)


def _greet(terminal: Terminal, server: EmbeddedServer, folder: Path, url: str, elsewhere: bool) -> None:
    found = "" if elsewhere else " `faultline` commands in this folder find it."
    terminal.say(f"PostgreSQL {server.version} in {folder}/, migrated.{found}")
    if elsewhere:
        terminal.remark(
            "FAULTLINE_DSN is set, and names another database: `faultline` commands here go to that one "
            "until `unset FAULTLINE_DSN`. This `faultline dev` uses its own"
        )
    terminal.say("For psql and your own programs, the same at every start:")
    terminal.say(f"  export FAULTLINE_DSN={url}")
    terminal.say(f"  SQLAlchemy: {url.replace('postgresql://', 'postgresql+psycopg://', 1)}")


def _log_every_job() -> None:
    """Readable lines, with one for each event of a job: a person is watching."""
    handler = configure_logging(json=False)
    handler.setLevel(logging.DEBUG)
    logging.getLogger("faultline.events").setLevel(logging.DEBUG)
