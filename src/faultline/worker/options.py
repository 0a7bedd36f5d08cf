"""The options of a worker, the same on the command line and in Python, and the queues that they name."""

import logging
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, TypedDict

from faultline.config import WorkerConfig, read_queues
from faultline.errors import ConfigError
from faultline.task import Registry
from faultline.text.suggest import did_you_mean

log = logging.getLogger("faultline.worker")

Queues = str | Iterable[str] | Mapping[str, int | None]
"""`"billing=5,mail"`, `["billing=5", "mail"]` or `{"billing": 5, "mail": None}`."""


class RunOptions(TypedDict, total=False):
    """The options of `app.run_worker` and `app.arun_worker`."""

    queues: Queues | None
    """Queues to work on; without it, every queue that the app's tasks name, and `default`."""
    concurrency: int | None
    """Jobs at once; 10 by default."""
    threads: int | None
    """Threads for plain handlers; as many as `concurrency` by default."""
    children: int | None
    """Child processes for handlers with run="process"; one a CPU by default."""
    lease: timedelta | None
    """How long a lease lasts unrenewed; 15 seconds by default."""
    grace: timedelta | None
    """How long jobs may go on after the worker was told to stop; 25 seconds by default."""
    config: WorkerConfig | None
    """All settings at once, in place of the options above."""
    name: str | None
    """The worker's name in the ledger; host:pid by default."""
    until_empty: bool
    """Stop when no job is due any more."""
    stop_after: int | None
    """Stop after so many jobs."""
    server: str | None
    """Work for a server, not the database: `grpc://host:port`; FAULTLINE_API_KEY and the like as always."""


_SETTINGS: Final = ("queues", "concurrency", "threads", "children", "lease", "grace")
_ELSEWHERE: Final = {
    "jobs": "stop_after", "jobs_max": "concurrency", "threads_max": "threads", "children_max": "children",
    "lease_for": "lease", "queue": "queues",
}  # fmt: skip
"""The names of these on the command line, and in WorkerConfig."""


def worker_config(
    queues: Queues,
    concurrency: int | None = None,
    threads: int | None = None,
    children: int | None = None,
    lease: timedelta | None = None,
    grace: timedelta | None = None,
) -> WorkerConfig:
    """The configuration of these options; what is not given stays at its default.

    >>> dict(worker_config("billing=5,mail").queues)
    {'billing': 5, 'mail': None}
    """
    asked: dict[str, Any] = {
        "queues": _read(queues) or None,
        "jobs_max": concurrency,
        "threads_max": threads,
        "children_max": children,
        "lease_for": lease,
        "grace": grace,
    }
    return WorkerConfig(**{name: value for name, value in asked.items() if value is not None})


def _read(queues: Queues) -> dict[str, int | None]:
    if isinstance(queues, Mapping):
        return dict(queues)
    listed = [queues] if isinstance(queues, str) else [*queues] if isinstance(queues, Iterable) else [queues]
    if not all(isinstance(words, str) for words in listed):
        raise ConfigError(
            f'queues cannot be {queues!r:.60}; it takes "billing=5,mail", a list of such texts, or '
            '{"billing": 5, "mail": None}'
        )
    return read_queues(word.strip() for words in listed for word in words.split(",") if word.strip())


def config_of(options: RunOptions, tasks: Registry) -> WorkerConfig:
    """The configuration that a program asked for; raises ConfigError for an option that is none."""
    known = list(RunOptions.__annotations__)
    for name in options:
        if name not in known:
            meant = _ELSEWHERE.get(name)
            hint = f"; did you mean {meant}?" if meant else did_you_mean(name, known)
            raise ConfigError(
                f"run_worker has no option {name[:60]!a}{hint or '.'} It takes {', '.join(known)}"
            )
    given: dict[str, Any] = {
        name: value for name, value in options.items() if name in _SETTINGS and value is not None
    }
    if config := options.get("config"):
        if given:
            raise ConfigError(
                f"config holds all settings of a worker: leave out {', '.join(given)}, or leave out config"
            )
        return config
    return worker_config(**{"queues": queues_of(tasks), **given})


def queues_of(tasks: Registry) -> list[str]:
    """Every queue the app's tasks name, and `default`: what a worker serves when it is told nothing else."""
    return sorted({spec.queue for spec in tasks} | {"default"})


def warn_of_queues(tasks: Registry, asked: Iterable[str]) -> None:
    """A queue that no task of the app names may be a typo: then this worker would find nothing."""
    named = queues_of(tasks)
    for queue in asked:
        if queue not in named:
            log.warning(
                "queue %s is served, but no task of this app names it%s only jobs that were sent there by "
                "name will come", queue, did_you_mean(queue, named) or ":",
            )  # fmt: skip


def tell_left_out(tasks: Registry, served: Collection[str]) -> None:
    """Jobs of a task whose queue this worker does not serve wait for another worker: name the task."""
    left: dict[str, list[str]] = {}
    for spec in tasks:
        if spec.queue not in served:
            left.setdefault(spec.queue, []).append(spec.name)
    said = [
        f"queue {queue} ({'task' if len(left[queue]) == 1 else 'tasks'} {', '.join(sorted(left[queue]))})"
        for queue in sorted(left)
    ]
    if said:
        log.info("not served by this worker: %s; other workers have to, or --queues", ", ".join(said))
