"""`faultline dev`: a database and a worker for an app, with nothing prepared."""

import logging
import os
import shlex
from contextlib import suppress
from pathlib import Path

import click
from psycopg.errors import DuplicateDatabase

from faultline.cli import loops
from faultline.cli.dev_server import DATABASE, FOLDER
from faultline.cli.loading import load_app
from faultline.cli.options import COUNT, Command, told
from faultline.cli.terminal import Terminal
from faultline.cli.worker import queues_of, worker_config
from faultline.config import Settings
from faultline.embedded import EmbeddedServer
from faultline.running import work
from faultline.store.migrate import migrate
from faultline.telemetry import configure_logging


@click.command(cls=Command)
@click.argument("app", metavar="MODULE:APP")
@click.option(
    "--folder", type=click.Path(file_okay=False, path_type=Path), default=FOLDER, show_default=True,
    help="Where the database lives; delete it to start anew.",
)  # fmt: skip
@click.option("-q", "--queues", multiple=True, metavar="NAME[=N],...", help="As in `faultline worker`.")
@click.option("--concurrency", type=COUNT, help="Jobs at once. [default: 10]")
@told
def command(
    terminal: Terminal, app: str, folder: Path, queues: tuple[str, ...], concurrency: int | None
) -> int:
    """Start a private PostgreSQL in .faultline/, migrate it, and run a worker for an app.

    Other commands run in the same folder find the database by themselves. Ctrl-C stops both; the data stays.
    """
    worker_config(queues, concurrency)  # what cannot work is refused before a server is started
    if terminal.dsn or os.environ.get("FAULTLINE_DSN"):
        terminal.remark("`faultline dev` brings its own database: the DSN that was set is not used")
    with EmbeddedServer.open(folder) as server:
        _keep_out_of_git(folder)
        dsn = _prepared(server)
        os.environ["FAULTLINE_DSN"] = dsn  # before the app is imported, so that it and its children find it
        found = load_app(app)
        found.connect_to(dsn)
        config = worker_config(queues or queues_of(found), concurrency)
        _greet(terminal, server, folder, dsn, [spec.name for spec in found.registry])
        terminal.say(f"Works on {', '.join(config.queues)}. Ctrl-C stops the worker and the server.")
        _log_every_job()
        return loops.run(work(found.registry, Settings.read(dsn=dsn), config, name="dev", signals=True))


def _keep_out_of_git(folder: Path) -> None:
    """A data folder belongs in nobody's repository."""
    with suppress(OSError):
        (folder / ".gitignore").write_text("*\n")


def _prepared(server: EmbeddedServer) -> str:
    with suppress(DuplicateDatabase):
        server.create_database(DATABASE)
    dsn = server.dsn(DATABASE)
    migrate(dsn)
    return dsn


def _greet(terminal: Terminal, server: EmbeddedServer, folder: Path, dsn: str, tasks: list[str]) -> None:
    terminal.say(f"PostgreSQL {server.version} in {folder}/, tasks: {', '.join(sorted(tasks)) or 'none'}")
    terminal.say("For psql and your own programs (`faultline` commands run in this folder need neither):")
    terminal.say(f"  psql {shlex.quote(dsn)}")
    terminal.say(f"  export FAULTLINE_DSN={shlex.quote(dsn)}")


def _log_every_job() -> None:
    """Readable lines, and one for each thing that happens to a job: here somebody is watching."""
    handler = configure_logging(json=False)
    handler.setLevel(logging.DEBUG)
    logging.getLogger("faultline.events").setLevel(logging.DEBUG)
