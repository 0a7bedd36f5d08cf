"""Metrics in the format of Prometheus.

    body, content_type = render(counting().figures.snapshot())

Only a server queries the database as well: otherwise each queue would be counted once a worker.

    metrics = ServerMetrics(astore)
    body, content_type = await metrics.scrape(request.headers.get("accept", ""))
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from faultline.errors import ConfigError
from faultline.metrics.database_metrics import DatabaseMetrics
from faultline.metrics.event_counter import hold, let_go
from faultline.metrics.names import METRICS, Metric
from faultline.metrics.series import Snapshot, Value, merged
from faultline.store.pool import AsyncStore

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family


def need_client() -> Any:
    """The client library, or an error that names the extra to install."""
    try:
        import prometheus_client
    except ImportError as missing:
        raise ConfigError(
            "metrics need the package prometheus-client; "
            "install it with `pip install 'faultline-queue[metrics]'`"
        ) from missing
    return prometheus_client


class SeriesCollector:
    """Figures as a collector, for a registry of your own: `registry.register(SeriesCollector(take))`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def collect(self) -> "Iterator[Family]":
        for name, series in self._snapshot.items():
            yield _family(METRICS[name], series)


def render(snapshot: Snapshot, accept: str = "") -> tuple[bytes, str]:
    """A scrape and its content type, in the format of Prometheus that the request prefers.

    >>> body, content_type = render({"retries": {("default", "charge"): 2.0}})
    >>> body.decode().splitlines()[-1], content_type.partition(";")[0]
    ('faultline_retries_total{queue="default",task="charge"} 2.0', 'text/plain')
    """
    client = need_client()
    registry = client.CollectorRegistry(auto_describe=False)
    registry.register(SeriesCollector(snapshot))
    encode, content_type = client.exposition.choose_encoder(accept)
    return encode(registry), content_type


class ServerMetrics:
    """The answer of a server's /metrics: its own process, and the whole database.

    The process counts until the last of them is closed: later code in the process pays nothing for it.
    """

    def __init__(self, astore: AsyncStore) -> None:
        need_client()
        self._counting = hold()
        self._database = DatabaseMetrics(astore)
        self._closed = False

    def close(self) -> None:
        """Stop counting; repeated calls do nothing."""
        if not self._closed:
            self._closed = True
            let_go()

    async def scrape(self, accept: str = "") -> tuple[bytes, str]:
        """A scrape and its content type; with the database away it says so, without a wait."""
        whole = merged([self._counting.figures.snapshot(), await self._database.read()])
        return render(whole, accept)


def _family(metric: Metric, series: dict[tuple[str, ...], Value]) -> "Family":
    from prometheus_client import core

    name = f"faultline_{metric.name}"
    if metric.kind == "histogram":
        family = core.HistogramMetricFamily(name, metric.help, labels=metric.labels)
        for labels, value in series.items():
            assert isinstance(value, list)
            family.add_metric(labels, list(_cumulative(metric, value)), value[-1])
        return family
    kind = core.CounterMetricFamily if metric.kind == "counter" else core.GaugeMetricFamily
    plain = kind(name, metric.help, labels=metric.labels)
    for labels, value in series.items():
        assert isinstance(value, float | int)
        plain.add_metric(labels, value)
    return plain


def _cumulative(metric: Metric, value: list[float]) -> Iterator[tuple[str, float]]:
    so_far = 0.0
    for bound, many in zip((*map(_bound, metric.buckets), "+Inf"), value[:-1], strict=True):
        so_far += many
        yield bound, so_far


def _bound(bucket: float) -> str:
    return repr(float(bucket))
