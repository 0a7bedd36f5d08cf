"""ScheduleSync: the schedules in an app's code are brought to the database when its worker starts."""

import asyncio
import logging
import os
from typing import Any, Final

from faultline.bounds import counted
from faultline.errors import ConfigError, FaultlineError, PermissionDenied
from faultline.schedules.schedule_spec import release_numbers
from faultline.store.rows import SyncedSchedule
from faultline.task import Registry
from faultline.worker.backend import Backend

log = logging.getLogger("faultline.worker")

LOOK_SECONDS: Final = 1.0
"""A handler may import a module that defines schedules."""

NAMELESS: Final = "default"
"""The name of an app that has none."""


class ScheduleSync:
    """Tells the database of the app's schedules; again when a module that is imported later adds some."""

    def __init__(self, tasks: Registry, backend: Backend) -> None:
        self._tasks = tasks
        self._backend = backend
        self._synced = 0
        self.release = app_release(tasks)

    async def sync(self) -> None:
        """Bring them to the database. An app without schedules and without a release has nothing to tell."""
        specs = list(self._tasks.schedules.values())
        if not specs and not self.release:
            return
        documents = [spec.document() for spec in specs]
        self._synced = len(specs)
        try:
            found = await self._backend.sync_schedules(
                self._tasks.app_name or NAMELESS, self.release, documents
            )
        except PermissionDenied as refused:
            log.error(
                "the schedules of this app are not told to the database: %s. They enqueue, so this needs "
                "faultline_producer; or run `faultline schedules sync MODULE:APP` with such a login", refused,
            )  # fmt: skip
            return
        tell_synced(self._tasks.app_name or NAMELESS, found)

    async def run(self) -> None:
        """Look for new schedules now and then, until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if len(self._tasks.schedules) == self._synced:
                continue
            try:
                await self.sync()
            except FaultlineError as trouble:
                self._synced = 0
                log.debug("the schedules could not be told now: %s", trouble)


def app_release(tasks: Registry) -> list[int]:
    """The release of an app's code: as the app says, else FAULTLINE_RELEASE; empty for none."""
    release: Any = tasks.release if tasks.release is not None else os.environ.get("FAULTLINE_RELEASE") or None
    if release is not None and tasks.app_name is None:
        if not tasks.schedules:
            return []
        raise ConfigError(
            "an app with a release and schedules needs a name: Faultline(name=...). Its release pauses the "
            "schedules that it does not have, and without names it would pause those of other apps"
        )
    return release_numbers(release)


def tell_synced(app: str, found: list[SyncedSchedule]) -> None:
    """Log what became of the schedules of an app."""
    changes = [f"{one.name} ({one.state})" for one in found if one.state in ("new", "changed")]
    if changes:
        log.info("schedules of app %s: %s", app, ", ".join(changes[:20]))
    for one in found:
        if one.state == "older":
            log.info(
                "release %s of app %s has run here before this one: its schedules stay as they are",
                one.said, app,
            )  # fmt: skip
        elif one.state == "foreign":
            whose = f"of app {one.said}" if one.said else "made by hand"
            log.error(
                "schedule %s of app %s was not changed: there is one of that name, %s. Give one of them "
                "another name: @app.schedule(..., name=...)", one.name, app, whose,
            )  # fmt: skip
        elif one.state == "refused":
            log.error("schedule %s of app %s was not written: %s", one.name, app, one.said)


def told_in_a_line(found: list[SyncedSchedule]) -> str:
    """How many of each kind, for a command.

    >>> told_in_a_line([SyncedSchedule("a", "new", None), SyncedSchedule("b", "same", None)])
    '1 schedule new, 1 schedule same'
    """
    kinds: dict[str, int] = {}
    for one in found:
        kinds[one.state] = kinds.get(one.state, 0) + 1
    return ", ".join(f"{counted(many, 'schedule')} {kind}" for kind, many in kinds.items())
