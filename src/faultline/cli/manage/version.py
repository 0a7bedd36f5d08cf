"""`faultline version`: what is installed here."""

import platform

import click
import psycopg

import faultline
from faultline.cli.options import CliCommand, told
from faultline.cli.terminal import Terminal
from faultline.store.sql_files import LATEST


@click.command(cls=CliCommand)
@told
def command(terminal: Terminal) -> None:
    """Print the versions of Faultline, its schema, Python and the driver."""
    known = {
        "faultline": faultline.__version__,
        "schema": LATEST,
        "python": platform.python_version(),
        "psycopg": psycopg.__version__,
        "psycopg_impl": psycopg.pq.__impl__,
    }
    if terminal.json:
        terminal.give(known)
    else:
        click.echo(
            f"faultline {known['faultline']} (schema {LATEST}, Python {known['python']}, "
            f"psycopg {known['psycopg']} {known['psycopg_impl']})"
        )
