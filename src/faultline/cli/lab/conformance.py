"""`faultline conformance`: checks a server, or a worker of another SDK, against the protocol."""

import asyncio
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faultline.cli.exit_codes import CHECK_FAILED
from faultline.cli.options import CliCommand, told
from faultline.cli.terminal import Terminal
from faultline.errors import ConfigError

if TYPE_CHECKING:
    from faultline.lab.conformance.verdict import ConformanceVerdict

MARKS = {"kept": "ok", "broken": "BROKEN", "skipped": "skipped"}
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(cls=CliCommand)
@click.argument("url", required=False)
@click.option("--worker", is_flag=True, help="Check a worker instead: listen, and judge what it says.")
@click.option(
    "--listen", default="127.0.0.1:0", show_default=True, metavar="HOST:PORT", help="Where, with --worker."
)
@click.option("--key-file", type=FILE, help="A file with the API key; FAULTLINE_API_KEY says it, too.")
@click.option("--tls-ca", type=FILE, help="CA of the server's certificate. [default: the system's]")
@click.argument("command_line", nargs=-1, type=click.UNPROCESSED)
@told
def command(
    terminal: Terminal,
    url: str | None,
    worker: bool,
    listen: str,
    key_file: Path | None,
    tls_ca: Path | None,
    command_line: tuple[str, ...],
) -> int:
    """Check the server at URL with a scripted worker, or with --worker a worker of your own SDK.

    A server is checked in queues without other users, with a key that has the scopes work, enqueue and read
    (without operate, the check of cancelling is skipped). A worker is started by the words behind `--`, with
    FAULTLINE_SERVER set, or by you. Exits with 0 when all was kept and 3 when something was broken.
    """
    if importlib.util.find_spec("grpc") is None:
        raise ConfigError("gRPC needs an extra: pip install 'faultline-queue[grpc]'")
    if worker:
        words = ([url] if url else []) + list(command_line)
        verdicts = asyncio.run(_check_worker(terminal, listen, words))
    elif url is None or command_line:
        raise click.UsageError("give the URL of one server, such as grpc://localhost:8001, or --worker")
    else:
        authority = None if tls_ca is None else tls_ca.read_bytes()
        verdicts = asyncio.run(_check_server(terminal, url, _key(key_file), authority))
    return _sum_up(terminal, verdicts)


def _key(key_file: Path | None) -> str | None:
    if key_file is not None:
        return key_file.read_text().strip()
    return os.environ.get("FAULTLINE_API_KEY") or None


async def _check_server(
    terminal: Terminal, url: str, key: str | None, ca: bytes | None
) -> "list[ConformanceVerdict]":
    import grpc

    from faultline.lab.conformance.run_checks import check_server

    secure, target = target_of(url)
    if ca is not None and not secure:
        raise ConfigError("--tls-ca is of use with TLS only; write the URL as grpcs://...")
    credentials = grpc.ssl_channel_credentials(ca) if secure else None
    return await check_server(target, key, _teller(terminal), credentials)


async def _check_worker(terminal: Terminal, listen: str, words: list[str]) -> "list[ConformanceVerdict]":
    from faultline.lab.conformance.run_checks import check_worker

    def ready(url: str) -> None:
        if not terminal.json and not terminal.quiet:
            click.echo(f"listening for a worker on {url}")

    return await check_worker(listen, words, _teller(terminal), ready)


def target_of(url: str) -> tuple[bool, str]:
    """Whether a URL asks for TLS, and what it names.

    >>> target_of("grpcs://queue.example:8001/"), target_of("localhost:8001")
    ((True, 'queue.example:8001'), (False, 'localhost:8001'))
    """
    scheme, marked, rest = url.rpartition("://")
    if marked and scheme not in ("grpc", "grpcs", "http", "https"):
        raise ConfigError(
            f"{url[:80]!a} is not the URL of a server; write it as grpc://host:port or grpcs://host:port"
        )
    target = rest.rstrip("/")
    if not target or "/" in target:
        raise ConfigError(f"{url[:80]!a} names no host and port; write it as grpc://host:port")
    return scheme in ("grpcs", "https"), target if ":" in target.rpartition("]")[2] else f"{target}:8001"


def _teller(terminal: Terminal) -> Any:
    def tell(verdict: "ConformanceVerdict") -> None:
        if not terminal.json and not (terminal.quiet and verdict.word == "kept"):
            told = f": {verdict.told}" if verdict.told else ""
            click.echo(f"{MARKS[verdict.word]:8} {verdict.name}{told}")

    return tell


def _sum_up(terminal: Terminal, verdicts: "list[ConformanceVerdict]") -> int:
    counts = {word: sum(verdict.word == word for verdict in verdicts) for word in MARKS}
    if terminal.json:
        terminal.give(
            {"conforms": not counts["broken"], **counts, "checks": [one.document() for one in verdicts]}
        )
    elif not terminal.quiet:
        click.echo(f"{counts['kept']} kept, {counts['broken']} broken, {counts['skipped']} skipped")
    return CHECK_FAILED if counts["broken"] else 0
