"""Figures: counters, gauges and histograms as plain numbers that can be added up across processes."""

import threading
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from faultline.metrics.names import METRICS, OTHER, SERIES_MAX, VALUES_MAX
from faultline.telemetry import scrub

Labels = tuple[str, ...]
Value = float | list[float]
"""A number; for a histogram the count of each bucket, past the last too, and their sum."""
Snapshot = dict[str, dict[Labels, Value]]


class MetricSeries:
    """The figures of one process. Every metric has a name in the table, every label a bound.

    >>> figures = MetricSeries()
    >>> figures.add("retries", ("default", "charge"))
    >>> figures.observe("job_pickup_seconds", ("default",), [0.002, 7200])
    >>> figures.snapshot()["retries"]
    {('default', 'charge'): 1.0}
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: Snapshot = {}
        self._known: dict[str, set[str]] = {label: set() for label in VALUES_MAX}

    def add(self, name: str, labels: Labels = (), by: float = 1.0) -> None:
        """Count up."""
        with self._lock:
            series, labels = self._series(name, labels)
            series[labels] = series.get(labels, 0.0) + by  # type: ignore[operator]

    def set(self, name: str, labels: Labels = (), value: float = 0.0) -> None:
        """Set a gauge, or a counter that is kept elsewhere."""
        with self._lock:
            series, labels = self._series(name, labels)
            series[labels] = float(value)

    def observe(self, name: str, labels: Labels, values: Iterable[float]) -> None:
        """Put values into a histogram; those that are not numbers are left out."""
        # Sorted once, then one search a bucket: with many values, a third of the time of a search a value.
        known = sorted(value for value in values if value == value)
        if not known:
            return
        buckets = METRICS[name].buckets
        with self._lock:
            series, labels = self._series(name, labels)
            held = series.setdefault(labels, [0.0] * (len(buckets) + 2))
            assert isinstance(held, list)
            below = 0
            for place, bound in enumerate(buckets):
                up_to = bisect_right(known, bound)
                held[place] += up_to - below
                below = up_to
            held[-2] += len(known) - below
            held[-1] += sum(known)

    def snapshot(self) -> Snapshot:
        """All figures at this moment."""
        with self._lock:
            return {
                name: {labels: list(v) if isinstance(v, list) else v for labels, v in series.items()}
                for name, series in self._values.items()
            }

    def _series(self, name: str, labels: Labels) -> tuple[dict[Labels, Value], Labels]:
        series = self._values.setdefault(name, {})
        if labels in series:
            return series, labels
        bound = tuple(self._bound(*each) for each in zip(METRICS[name].labels, labels, strict=True))
        if bound not in series and len(series) >= SERIES_MAX:
            bound = tuple(
                OTHER if label in VALUES_MAX else value
                for label, value in zip(METRICS[name].labels, bound, strict=True)
            )
        return series, bound

    def _bound(self, label: str, value: str) -> str:
        """A name while there are few of them; 10^5 queue names become 100 and `other`."""
        value = scrub(value)  # a task's name may be any text, even an API key
        known = self._known.get(label)
        if known is None or value in known:
            return value
        if len(known) >= VALUES_MAX[label]:
            return OTHER
        known.add(value)
        return value


def merged(snapshots: Sequence[Snapshot]) -> Snapshot:
    """Several processes as one: counters, histograms and most gauges add up, of ages the largest counts.

    >>> one = {"retries": {("q", "t"): 1.0}, "pacemaker_beat_age_seconds": {(): 2.0}}
    >>> merged([one, one])
    {'retries': {('q', 't'): 2.0}, 'pacemaker_beat_age_seconds': {(): 2.0}}
    """
    whole: Snapshot = {}
    for snapshot in snapshots:
        for name, series in snapshot.items():
            target = whole.setdefault(name, {})
            for labels, value in series.items():
                target[labels] = _together(METRICS[name].together, target.get(labels), value)
    return whole


def _together(how: str, one: Value | None, other: Value) -> Value:
    if one is None:
        return list(other) if isinstance(other, list) else other
    if isinstance(one, list) and isinstance(other, list):
        return [left + right for left, right in zip(one, other, strict=True)]
    assert isinstance(one, float | int)
    assert isinstance(other, float | int)
    return max(one, other) if how == "max" else one + other


def lasting(snapshot: Snapshot) -> Snapshot:
    """The figures that outlast a process: its counts, not its gauges.

    >>> lasting({"retries": {("q", "t"): 1.0}, "worker_jobs_in_hand": {(): 3.0}})
    {'retries': {('q', 't'): 1.0}}
    """
    return {name: series for name, series in snapshot.items() if METRICS[name].kind != "gauge"}


def to_json(snapshot: Snapshot) -> dict[str, Any]:
    """For a file between two processes of one release."""
    return {
        name: [[list(labels), value] for labels, value in series.items()] for name, series in snapshot.items()
    }


def from_json(document: dict[str, Any]) -> Snapshot:
    """The figures from such a file; metrics of another release are left out.

    >>> from_json(to_json({"retries": {("q", "t"): 1.0}}))
    {'retries': {('q', 't'): 1.0}}
    """
    return {
        name: {tuple(labels): value for labels, value in series}
        for name, series in document.items()
        if name in METRICS
    }
