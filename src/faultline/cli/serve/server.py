"""`faultline server`: a database of jobs as a service, over HTTP and gRPC."""

import importlib.util
import logging
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faultline.cli.options import DURATION, CliCommand, told, warn_of_mistyped
from faultline.cli.terminal import Terminal
from faultline.errors import ConfigError
from faultline.remote.grpc_extra import quiet_grpc
from faultline.runtime import event_loop
from faultline.telemetry import configure_logging

if TYPE_CHECKING:
    from faultline.server.config import ServerConfig

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(cls=CliCommand)
@click.option(
    "--http",
    metavar="HOST:PORT",
    default="127.0.0.1:8000",
    show_default=True,
    help="Listen for HTTP here; `off` for not at all.",
)
@click.option("--grpc", metavar="HOST:PORT", help="Listen for gRPC here. [default: not at all]")
@click.option("--tls-cert", type=FILE, help="The certificate, with those that signed it.")
@click.option("--tls-key", type=FILE, help="Its private key.")
@click.option(
    "--tls-client-ca", type=FILE, help="Take only clients with a certificate signed by one of these."
)
@click.option(
    "--tls-revoked",
    type=FILE,
    help="Of those, refuse the ones with these SHA-256 fingerprints, one a line; read again when it changes.",
)
@click.option(
    "--behind-proxy", is_flag=True, help="A proxy that ends TLS stands before it: every request needs a key."
)
@click.option(
    "--trust-loopback", is_flag=True,
    help="Let clients on this machine read everything without a key. Not where a proxy runs on it.",
)  # fmt: skip
@click.option(
    "--trust-proxy", multiple=True, metavar="ADDRESS",
    help="An address or network of proxies, which may have more connections than others; may be repeated.",
)  # fmt: skip
@click.option(
    "--allow-host", multiple=True, metavar="NAME", help="A name clients call it by; may be repeated."
)
@click.option(
    "--watchdog/--no-watchdog", default=True, show_default=True, help="Take lost jobs back, as workers do."
)
@click.option(
    "--drills", is_flag=True, help="Serve the routes by which an admin's key starts drills over HTTP."
)
@click.option(
    "--grace",
    type=DURATION,
    default="25s",
    show_default=True,
    help="How long calls may take to end when told to stop.",
)
@click.option(
    "--log",
    type=click.Choice(["json", "lines"]),
    help="How log lines look. [default: lines on a terminal, else json]",
)
@told
def command(terminal: Terminal, /, log: str | None, **asked: Any) -> int:
    """Serve the jobs of a database over HTTP, and over gRPC where asked.

    It holds no state: any number of them may serve one database. Every request needs an API key; without any
    it listens on this machine alone. SIGTERM or Ctrl-C lets calls under way end within the grace; a second
    one does not wait.
    """
    for module in ("fastapi", "uvicorn", "httptools"):
        if importlib.util.find_spec(module) is None:
            raise ConfigError("the server needs an extra: pip install 'faultline-queue[server]'")
    quiet_grpc("NONE")
    from faultline.server.process import Server

    config = server_config(**asked)
    settings = terminal.settings()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # its other lines repeat ours
    configure_logging(
        json=None if log is None else log == "json", level="warning" if terminal.quiet else settings.log
    )
    warn_of_mistyped(logging.getLogger("faultline.server"))

    async def serve() -> int:
        return await Server(settings, config).run(signals=True)

    return event_loop.run(serve())


def server_config(
    http: str,
    grpc: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    tls_client_ca: Path | None,
    tls_revoked: Path | None,
    behind_proxy: bool,
    trust_loopback: bool,
    trust_proxy: tuple[str, ...],
    allow_host: tuple[str, ...],
    watchdog: bool,
    drills: bool,
    grace: timedelta,
) -> "ServerConfig":
    """The configuration from the command line."""
    from faultline.server.config import GRPC_PORT, ListenAddress, ServerConfig, Tls

    if (tls_cert is None) != (tls_key is None) or (tls_client_ca is not None and tls_cert is None):
        raise ConfigError("--tls-cert and --tls-key go together, and --tls-client-ca needs both")
    if tls_revoked is not None and tls_client_ca is None:
        raise ConfigError(
            "--tls-revoked lists client certificates, and without --tls-client-ca none is asked for"
        )
    return ServerConfig(
        http=None if http == "off" else ListenAddress.parse(http),
        grpc=None if grpc is None else ListenAddress.parse(grpc, GRPC_PORT),
        tls=None
        if tls_cert is None or tls_key is None
        else Tls(cert=tls_cert, key=tls_key, client_ca=tls_client_ca, revoked=tls_revoked),
        behind_proxy=behind_proxy,
        trust_loopback=trust_loopback,
        proxies=trust_proxy,
        hosts=allow_host,
        watchdog=watchdog,
        drills=drills,
        grace=grace,
    )
