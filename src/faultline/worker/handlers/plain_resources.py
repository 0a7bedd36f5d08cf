"""Resources for plain handlers: opened in the thread of the first job that asks, shared by all threads."""

import threading
from contextlib import ExitStack
from typing import Any

from faultline.extensions import Resource
from faultline.job import Job
from faultline.worker.handlers.opening import not_opened, tell_not_closed


class PlainResources:
    """The plain resources of one process, each opened when a job first asks for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._opening: dict[Resource, threading.Lock] = {}
        self._opened: dict[Resource, Any] = {}
        self._order: list[tuple[Resource, Any]] = []

    def give(self, resource: Resource | None, job: Job, stack: ExitStack) -> Any:
        """The resource itself; one of a job is opened here, and closed with the stack."""
        assert resource is not None, "asked at the worker's start"
        if resource.scope == "process":
            return self._opened[resource] if resource in self._opened else self._open(resource, job)
        try:
            return stack.enter_context(resource.open(job))
        except Exception as error:
            raise not_opened(resource, error) from error

    def _open(self, resource: Resource, job: Job) -> Any:
        with self._lock:
            turn = self._opening.setdefault(resource, threading.Lock())
        with turn:  # a resource that takes long to open holds up no other
            if resource in self._opened:
                return self._opened[resource]
            try:
                manager = resource.open(job)
                value = manager.__enter__()
            except Exception as error:
                raise not_opened(resource, error) from error
            self._order.append((resource, manager))
            self._opened[resource] = value
            return value

    def close(self) -> None:
        """Close them all, the last opened first."""
        order, self._order, self._opened = self._order, [], {}
        for resource, manager in reversed(order):
            try:
                manager.__exit__(None, None, None)
            except Exception as error:
                tell_not_closed(resource, error)
