"""A job and its ledger, as the TaskResult of `django.tasks`."""

import builtins
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

from faultline import errors
from faultline.integrations.django.task_backend.arguments import split
from faultline.integrations.django.task_backend.interface import TaskError, TaskResult, TaskResultStatus
from faultline.job import JobInfo, JobState, LedgerEntry

STATUSES: Final = {
    JobState.QUEUED: TaskResultStatus.READY,
    JobState.RUNNING: TaskResultStatus.RUNNING,
    JobState.SUCCEEDED: TaskResultStatus.SUCCESSFUL,
    JobState.DEAD: TaskResultStatus.FAILED,
    JobState.CANCELLED: TaskResultStatus.FAILED,
}
NOT_COUNTED: Final = ("snoozed", "released")
"""The ends of a lease that are no attempt."""
UNKNOWN_WORKER: Final = "unknown"
"""The worker of an attempt whose ledger entry was pruned."""

_CLASS: Final = re.compile(r"^of class (\S+)$", re.MULTILINE)
_FIRST: Final = re.compile(r"\w+")


class LedgerError(TaskError):
    """An error of the ledger, whose text may quote a client: the class that it names is never imported."""

    __slots__ = ()

    @property
    def exception_class(self) -> type[BaseException]:
        """The class, if a module that this process has imported already holds it."""
        parts = self.exception_class_path.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            found: Any = sys.modules.get(".".join(parts[:cut]))
            if found is not None:
                for name in parts[cut:]:
                    # By __dict__: a module's own __getattr__ may import.
                    found = getattr(found, "__dict__", {}).get(name)
                if isinstance(found, type) and issubclass(found, BaseException):
                    return found
                break
        raise ImportError(f"no module that is imported here has an exception {self.exception_class_path}")


def class_note(error: BaseException) -> str | None:
    """The line that names an exception's class in the ledger; None of a builtin one, whose name says it."""
    kind = type(error)
    return None if kind.__module__ == "builtins" else f"of class {kind.__module__}.{kind.__qualname__}"


def result_of(
    info: JobInfo,
    alias: str,
    task: Any,
    args: list[Any] | None,
    kwargs: dict[str, Any] | None,
    entries: Sequence[LedgerEntry],
) -> Any:
    """What `enqueue` and `get_result` give; without args and kwargs, those of the job."""
    attempts = [entry for entry in entries if entry.outcome not in NOT_COUNTED]
    begun = [entry.claimed_at for entry in attempts if entry.claimed_at is not None]
    begun += [info.claimed_at] if info.claimed_at is not None else []
    kept = split(info.args)
    result = TaskResult(
        task=_as_enqueued(task, info, kept["backend"] or alias),
        id=str(info.id),
        status=STATUSES[info.state],
        enqueued_at=info.created_at,
        started_at=min(begun, default=None),
        last_attempted_at=max(begun, default=None),
        finished_at=info.finished_at,
        args=kept["args"] if args is None else args,
        kwargs=kept["kwargs"] if kwargs is None else kwargs,
        backend=kept["backend"] or alias,
        errors=[error_of(entry.error) for entry in attempts if entry.error],
        worker_ids=_workers(info, attempts),
    )
    if info.state is JobState.SUCCEEDED:
        object.__setattr__(result, "_return_value", info.result)
    return result


def error_of(text: str) -> Any:
    """An error as the ledger has it, with the path of its class."""
    return LedgerError(exception_class_path=_class_path(text), traceback=_traceback(text))


def _traceback(text: str) -> str:
    """The frames first and the error at the end, as Python's own have it; the ledger has the error first."""
    lines = [line for line in text.split("\n") if not _CLASS.fullmatch(line)]
    frames = next((at for at, line in enumerate(lines) if line.startswith("  ")), len(lines))
    begin = ["Traceback (most recent call first):"] if frames < len(lines) else []
    return "\n".join([*begin, *lines[frames:], *lines[:frames], ""])


def _class_path(text: str) -> str:
    """The class that the wrapper of the task has noted, or one that the first word names."""
    first = _FIRST.match(text)
    for noted in _CLASS.findall(text):
        if first and noted.rpartition(".")[2] == first[0]:
            return str(noted)
    for module in (builtins, errors):
        kind = getattr(module, first[0], None) if first else None
        if isinstance(kind, type) and issubclass(kind, BaseException):
            return f"{module.__name__}.{kind.__name__}"
    return f"{errors.__name__}.{errors.WorkersKeepDying.__name__ if 'expired' in text else 'FaultlineError'}"


def _as_enqueued(task: Any, info: JobInfo, alias: str) -> Any:
    """The task with the queue, priority and time of this job."""
    changes: dict[str, Any] = {"queue_name": info.queue, "priority": -info.priority, "backend": alias}
    if info.run_at > info.created_at:
        changes["run_after"] = info.run_at
    if all(getattr(task, name) == value for name, value in changes.items()):
        return task
    return task.using(**changes)


def _workers(info: JobInfo, attempts: Sequence[LedgerEntry]) -> list[str]:
    """The worker of each attempt, in order: as many as there were attempts."""
    by_attempt = {entry.attempt: entry.worker for entry in attempts}
    if info.state is JobState.RUNNING:
        by_attempt[info.attempt] = info.worker
    return [by_attempt.get(number) or UNKNOWN_WORKER for number in range(1, info.attempt + 1)]
