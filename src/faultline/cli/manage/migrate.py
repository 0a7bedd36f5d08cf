"""`faultline migrate`: bring a database to this version."""

import click

from faultline.bounds import counted
from faultline.cli.exit_codes import CHECK_FAILED
from faultline.cli.options import CliCommand, told
from faultline.cli.terminal import Terminal
from faultline.errors import ConfigError
from faultline.store import migrate
from faultline.store.migrate import SchemaState
from faultline.store.sql_files import LATEST


@click.command(cls=CliCommand)
@click.option("--check", is_flag=True, help="Change nothing; exit with 3 when the database is not current.")
@click.option(
    "--sql", is_flag=True, help="Print the whole installation as one SQL script; no database needed."
)
@click.option(
    "--since",
    type=int,
    default=0,
    metavar="NUMBER",
    help="With --sql: only what is newer than this schema, and all functions; --check tells the number.",
)
@told
def command(terminal: Terminal, check: bool, sql: bool, since: int) -> int:
    """Install Faultline in a database, or bring it to this version.

    One transaction: killed half way it leaves nothing behind. Safe to repeat, and to run twice at once.
    """
    if since and not sql:
        raise ConfigError("--since is for --sql; a database tells its own number to `faultline migrate`")
    if sql:
        click.echo(migrate.script(since), nl=False)
        return 0
    dsn = terminal.settings().require_dsn()
    standing = migrate.check(dsn) if check else migrate.migrate(dsn)
    _tell(terminal, standing, check)
    return CHECK_FAILED if check and not standing.is_current else 0


def _tell(terminal: Terminal, standing: SchemaState, check: bool) -> None:
    pending = [f"{step.number:04d}_{step.name}" for step in standing.pending]
    if terminal.json:
        document = {
            "schema": standing.number if check else LATEST,
            "latest": LATEST,
            "current": standing.is_current or not check,
            "pending" if check else "applied": pending,
            "functions_differ" if check else "functions_renewed": standing.functions_differ,
        }
        terminal.give(document)
    elif standing.is_current:
        terminal.say(f"the schema is current, at {LATEST}")
    elif check:
        todo = f"{counted(len(pending), 'migration')} ({', '.join(pending)})" if pending else "its functions"
        terminal.say(
            f"the schema is at {standing.number} of {LATEST}; missing: {todo}. Run `faultline migrate`"
        )
    else:
        done = f"applied {', '.join(pending)}" if pending else "renewed its functions"
        terminal.say(f"the schema is now at {LATEST}: {done}")
