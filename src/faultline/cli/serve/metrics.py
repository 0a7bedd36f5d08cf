"""`faultline metrics`: the figures of the whole database, once or as an endpoint of its own."""

import asyncio
import contextlib
import signal
from typing import TYPE_CHECKING

import click

from faultline.cli.options import ADDRESS, CliCommand, told
from faultline.cli.terminal import Terminal
from faultline.store import calls

if TYPE_CHECKING:
    from faultline.metrics.endpoint import MetricsAddress


@click.command(cls=CliCommand)
@click.option(
    "--listen", type=ADDRESS, metavar="[HOST:]PORT",
    help="Serve them at /metrics until stopped; on loopback unless a host is named.",
)  # fmt: skip
@told
def command(terminal: Terminal, listen: "MetricsAddress | None") -> int:
    """Print the figures of the whole database as Prometheus reads them: depths, lags, refusals, dead rows.

    A server has them at /metrics too. Have one of them scraped, not all: these are figures of the database,
    not of a process, and would be counted once for each.
    """
    from faultline.metrics import prometheus
    from faultline.metrics.database_metrics import of_rows

    prometheus.need_client()
    if listen is not None:
        return asyncio.run(_serve(terminal, listen))
    with terminal.database() as session:
        body, _ = prometheus.render(of_rows(session.run(calls.metrics())))
    click.echo(body.decode(), nl=False)
    return 0


async def _serve(terminal: Terminal, address: "MetricsAddress") -> int:
    from faultline.metrics.endpoint import MetricsEndpoint
    from faultline.metrics.prometheus import ServerMetrics
    from faultline.store.pool import AsyncStore
    from faultline.telemetry import configure_logging

    settings = terminal.settings()
    configure_logging(level="warning" if terminal.quiet else settings.log)
    astore = AsyncStore(settings.require_dsn(), prepare=settings.prepare, connections_max=1)
    metrics = ServerMetrics(astore)
    endpoint = MetricsEndpoint(address, metrics.scrape)
    serving = asyncio.create_task(endpoint.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
    terminal.remark(f"metrics at http://{address}/metrics")
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    finally:
        metrics.close()
        await astore.close()
    return 0
