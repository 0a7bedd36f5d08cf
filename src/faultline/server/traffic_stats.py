"""TrafficStats: the requests to one API of the server and their answers, gathered for the metrics."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from faultline.telemetry.events import has_listeners, record_metric

GATHERED_MAX: Final = 500
"""The number of requests in one event: an event for each would cost more than the answer."""

OK, REFUSED, FAILED = "ok", "refused", "failed"


class ServedRequest:
    """One request under way: `answer` and `reason` are its result."""

    __slots__ = ("answer", "reason", "route", "received", "sent")

    def __init__(self, route: str) -> None:
        self.route = route
        self.answer = OK
        self.reason: str | None = None
        self.received = self.sent = 0

    def refuse(self, status: int, reason: str) -> None:
        """Mark it as refused: the client's fault below 500, ours from there on."""
        self.answer = REFUSED if status < 500 else FAILED
        self.reason = reason


class TrafficStats:
    """Counts requests, refusals, times and bytes of an API; nothing while no exporter listens.

    >>> door = TrafficStats("http")
    >>> with door.serving("/api/v1/jobs") as served:
    ...     served.refuse(404, "not_found")
    """

    def __init__(self, door: str) -> None:
        self.door = door
        self.connections: Callable[[], int] = lambda: 0
        self.in_hand: Callable[[], dict[str, int]] = dict
        self._requests: Counter[tuple[str, str]] = Counter()
        self._refused: Counter[str] = Counter()
        self._took: dict[str, list[float]] = {}
        self._received = self._sent = self._gathered = 0

    @contextmanager
    def serving(self, route: str) -> Iterator[ServedRequest]:
        """Count a request from here to the end of the block, also where it raises."""
        served, began = ServedRequest(route), time.monotonic()
        try:
            yield served
        finally:
            self._count(served, time.monotonic() - began)

    def refused(self, reason: str) -> None:
        """Count a refusal without a request: a connection that was turned away."""
        if has_listeners():
            self._refused[reason] += 1
            self._gather()

    def _count(self, served: ServedRequest, seconds: float) -> None:
        if not has_listeners():
            return
        self._requests[served.route, served.answer] += 1
        if served.reason is not None:
            self._refused[served.reason] += 1
        self._took.setdefault(served.route, []).append(seconds)
        self._received += served.received
        self._sent += served.sent
        self._gather()

    def _gather(self) -> None:
        self._gathered += 1
        if self._gathered >= GATHERED_MAX:
            self.flush()

    def flush(self) -> None:
        """Emit the gathered counts, and the present state."""
        record_metric(
            "door_served", door=self.door, requests=self._requests, refused=self._refused, took=self._took,
            received=self._received, sent=self._sent, connections=self.connections(), in_hand=self.in_hand(),
        )  # fmt: skip
        self._requests, self._refused, self._took = Counter(), Counter(), {}
        self._received = self._sent = self._gathered = 0
