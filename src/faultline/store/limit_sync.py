"""Tell a database the limits of an app: each is one call, and the jobs of a new one move in batches.

A generator of calls, which takes their replies: its caller waits for them in its own way.
"""

from collections.abc import Awaitable, Callable, Generator
from typing import Any

from faultline.errors import ConfigError
from faultline.limit import Limit
from faultline.store import calls
from faultline.store.call import Call
from faultline.task import Registry, TaskSpec

Steps = Generator[Call[Any], Any, int]


def declare(tasks: Registry) -> Steps:
    """Every limit of the app, a parent before its children; then its tasks. Gives how many jobs were moved.

    What the database was told before, and what was changed by hand since, stays.
    """
    limits = limits_of(tasks)
    for name, limit in sorted(limits.items(), key=lambda each: each[1].parent is not None):
        yield calls.set_limit(name, limit, from_code=True)
    moved = 0
    for spec in tasks:
        if spec.limit is not None:
            tie = calls.limit_task(spec.name, name_of(spec), _key_of(spec, limits), spec.queue)
            if (yield tie):
                moved += yield from move_jobs(spec.name)
    return moved


def move_jobs(task: str) -> Steps:
    """Bring the jobs that a task has under the limit that it has now."""
    moved: int = 0
    after = 0
    while True:
        count, upto = yield calls.move_to_gates(task, after)
        moved += count
        if upto is None:
            return moved
        after = upto


def carry(steps: Steps, run: Callable[[Call[Any]], Any]) -> int:
    """Run the calls one after the other."""
    reply = None
    while True:
        try:
            call = steps.send(reply)
        except StopIteration as end:
            return int(end.value)
        reply = run(call)


async def acarry(steps: Steps, run: Callable[[Call[Any]], Awaitable[Any]]) -> int:
    """The same, awaited."""
    reply = None
    while True:
        try:
            call = steps.send(reply)
        except StopIteration as end:
            return int(end.value)
        reply = await run(call)


def limits_of(tasks: Registry) -> dict[str, Limit]:
    """The limits of an app by name; ConfigError where one name has two meanings, or a parent is missing."""
    limits = dict(tasks.limits)
    for spec in tasks:
        if isinstance(spec.limit, Limit):
            name = spec.limit.name or spec.name
            if limits.setdefault(name, spec.limit) != spec.limit:
                raise ConfigError(
                    f"task {spec.name}: limit {name} has other bounds elsewhere. Register it once, by "
                    f'app.limit(...), and name it: limit="{name}"'
                )
    return limits


def name_of(spec: TaskSpec) -> str | None:
    """The name of a task's limit: the one it was given, else the task's own."""
    if isinstance(spec.limit, Limit):
        return spec.limit.name or spec.name
    return spec.limit


def _key_of(spec: TaskSpec, limits: dict[str, Limit]) -> list[str] | None:
    named = limits.get(spec.limit) if isinstance(spec.limit, str) else spec.limit
    return None if named is None else named.key_path
