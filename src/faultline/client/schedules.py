"""Schedules: what an app asks of the schedules in its database, from code or made by hand."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from faultline.args import ResultReader
from faultline.client.handle import Handle
from faultline.client.schedule_decorator import NO_JITTER, When, spec_for
from faultline.client.sender import Sender
from faultline.client.task_client import Task
from faultline.errors import JobNotFound, OutOfBounds
from faultline.schedules.ranges import coming_times, past_times
from faultline.schedules.schedule_info import BackfilledOccurrence, Occurrence, ScheduleInfo
from faultline.schedules.schedule_spec import Missed, Overlap
from faultline.store import calls
from faultline.store.call import Call
from faultline.text.suggest import did_you_mean

PAGE_MAX: Final = 1_000
NAMES_COMPARED: Final = 10_000

Infos = list[ScheduleInfo]
Occurrences = list[Occurrence]
Backfilled = list[BackfilledOccurrence]
Moments = list[datetime]


class Schedules:
    """`app.schedules`: those of the database. Each method has an async twin with an `a` before its name.

    >>> from faultline import Faultline
    >>> app = Faultline("dbname=shop")
    >>> app.schedules
    Schedules()
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def list(self, *, after: str | None = None, limit: int = 100) -> Infos:
        """The schedules by name; give the last name seen as `after` for the next page.

        [schedule.name for schedule in app.schedules.list()]
        """
        return self._sender.run(_page(after, limit), "schedules.list")

    async def alist(self, *, after: str | None = None, limit: int = 100) -> Infos:
        """The schedules by name; give the last name seen as `after` for the next page."""
        return await self._sender.arun(_page(after, limit))

    def get(self, name: str) -> ScheduleInfo:
        """The schedule of this name, or JobNotFound.

        app.schedules.get("nightly").next_at
        """
        found = self._sender.run(calls.list_schedules(name), "schedules.get")
        return found[0] if found else _not_found(name, self._sender.run(_NAMES, "schedules.get"))

    async def aget(self, name: str) -> ScheduleInfo:
        """The schedule of this name, or JobNotFound."""
        found = await self._sender.arun(calls.list_schedules(name))
        return found[0] if found else _not_found(name, await self._sender.arun(_NAMES))

    def set(
        self,
        name: str,
        task: Task[..., Any],
        when: When,
        *,
        tz: str | None = None,
        args: Mapping[str, Any] | None = None,
        missed: Missed = "once",
        overlap: Overlap = "allow",
        jitter: timedelta = NO_JITTER,
    ) -> ScheduleInfo:
        """Make a schedule that is in no code, or change one; its jobs have the options of the task.

        app.schedules.set("report-7", report, "0 8 * * 1", tz="Europe/Paris", args={"customer": 7})
        """
        spec = spec_for(
            task, when, name=name, tz=tz, args=args, missed=missed, overlap=overlap, jitter=jitter
        )
        self._sender.run(calls.set_schedule(spec.document()), "schedules.set")
        return self.get(name)

    async def aset(
        self,
        name: str,
        task: Task[..., Any],
        when: When,
        *,
        tz: str | None = None,
        args: Mapping[str, Any] | None = None,
        missed: Missed = "once",
        overlap: Overlap = "allow",
        jitter: timedelta = NO_JITTER,
    ) -> ScheduleInfo:
        """Make a schedule that is in no code, or change one; its jobs have the options of the task."""
        spec = spec_for(
            task, when, name=name, tz=tz, args=args, missed=missed, overlap=overlap, jitter=jitter
        )
        await self._sender.arun(calls.set_schedule(spec.document()))
        return await self.aget(name)

    def delete(self, name: str, reason: str | None = None) -> None:
        """Forget a schedule; its jobs stay. One that is in an app's code is made again by the next worker.

        app.schedules.delete("report-7")
        """
        self._sender.run(calls.delete_schedule(name, reason), "schedules.delete")

    async def adelete(self, name: str, reason: str | None = None) -> None:
        """Forget a schedule; its jobs stay. One that is in an app's code is made again by the next worker."""
        await self._sender.arun(calls.delete_schedule(name, reason))

    def pause(self, name: str, reason: str | None = None) -> None:
        """Let no occurrence be enqueued until it is resumed.

        app.schedules.pause("nightly", "the disk is full")
        """
        self._sender.run(calls.pause_schedule(name, reason), "schedules.pause")

    async def apause(self, name: str, reason: str | None = None) -> None:
        """Let no occurrence be enqueued until it is resumed."""
        await self._sender.arun(calls.pause_schedule(name, reason))

    def resume(self, name: str, reason: str | None = None) -> None:
        """Go on from now; what fell into the pause is not enqueued.

        app.schedules.resume("nightly")
        """
        self._sender.run(calls.resume_schedule(name, reason), "schedules.resume")

    async def aresume(self, name: str, reason: str | None = None) -> None:
        """Go on from now; what fell into the pause is not enqueued."""
        await self._sender.arun(calls.resume_schedule(name, reason))

    def trigger(self, name: str, reason: str | None = None) -> Handle[Any]:
        """Enqueue a job of it now, besides its times; also while it is paused.

        app.schedules.trigger("nightly").result(timeout=60)
        """
        made = self._sender.run(calls.trigger_schedule(name, reason), "schedules.trigger")
        self._sender.hint(made[1])
        return self._handle(made[0])

    async def atrigger(self, name: str, reason: str | None = None) -> Handle[Any]:
        """Enqueue a job of it now, besides its times; also while it is paused."""
        made = await self._sender.arun(calls.trigger_schedule(name, reason))
        await self._sender.ahint(made[1])
        return self._handle(made[0])

    def backfill(
        self,
        name: str,
        since: datetime,
        until: datetime | None = None,
        *,
        preview: bool = False,
        reason: str | None = None,
    ) -> Backfilled:
        """Enqueue a job for each past time in a range that has none; `preview` only says for which.

        The range begins at `since` and ends before `until`, or now; at most 1,000 times at once.

        app.schedules.backfill("nightly", monday, wednesday, preview=True)
        """
        found = self.get(name)
        call = calls.backfill(
            name, found.revision, past_times(found, since, until), preview=preview, reason=reason
        )
        made = self._sender.run(call, "schedules.backfill")
        if any(one.is_new for one in made) and not preview:
            self._sender.hint(found.queue)
        return made

    async def abackfill(
        self,
        name: str,
        since: datetime,
        until: datetime | None = None,
        *,
        preview: bool = False,
        reason: str | None = None,
    ) -> Backfilled:
        """Enqueue a job for each past time in a range that has none; `preview` only says for which.

        The range begins at `since` and ends before `until`, or now; at most 1,000 times at once.
        """
        found = await self.aget(name)
        call = calls.backfill(
            name, found.revision, past_times(found, since, until), preview=preview, reason=reason
        )
        made = await self._sender.arun(call)
        if any(one.is_new for one in made) and not preview:
            await self._sender.ahint(found.queue)
        return made

    def next(self, name: str, count: int = 5) -> Moments:
        """When it will be due; nothing while it is paused or has ended.

        app.schedules.next("nightly", 3)
        """
        return coming_times(self.get(name), count)

    async def anext(self, name: str, count: int = 5) -> Moments:
        """When it will be due; nothing while it is paused or has ended."""
        return coming_times(await self.aget(name), count)

    def history(self, name: str, *, before: datetime | None = None, limit: int = 50) -> Occurrences:
        """Its occurrences, newest first, with their jobs; kept as long as the ledger.

        app.schedules.history("nightly")[0].job_id
        """
        return self._sender.run(_occurrences(name, before, limit), "schedules.history")

    async def ahistory(self, name: str, *, before: datetime | None = None, limit: int = 50) -> Occurrences:
        """Its occurrences, newest first, with their jobs; kept as long as the ledger."""
        return await self._sender.arun(_occurrences(name, before, limit))

    def of(self, job_id: int) -> Occurrence | None:
        """The occurrence that a job was made for; None for a job of no schedule.

        app.schedules.of(7)
        """
        found = self._sender.run(calls.occurrence_of(job_id), "schedules.of")
        return found[0] if found else None

    async def aof(self, job_id: int) -> Occurrence | None:
        """The occurrence that a job was made for; None for a job of no schedule."""
        found = await self._sender.arun(calls.occurrence_of(job_id))
        return found[0] if found else None

    def _handle(self, job_id: int) -> Handle[Any]:
        return Handle(job_id, self._sender, ResultReader(_any_result))

    def __repr__(self) -> str:
        return "Schedules()"


def _any_result() -> Any:
    """Its annotation says how the result of an unknown task is read: as it stands."""


_NAMES: Call[Infos] = calls.list_schedules(None, None, NAMES_COMPARED)


def _not_found(name: str, known: Infos) -> ScheduleInfo:
    hint = did_you_mean(str(name), [schedule.name for schedule in known]) or "."
    raise JobNotFound(f"there is no schedule {str(name)[:128]!a}{hint} app.schedules.list() has them all")


def _page(after: str | None, limit: int) -> Call[Infos]:
    if not 1 <= limit <= PAGE_MAX:
        raise OutOfBounds(f"limit goes from 1 to {PAGE_MAX} schedules a page; got {limit}")
    return calls.list_schedules(None, after, limit)


def _occurrences(name: str, before: datetime | None, limit: int) -> Call[Occurrences]:
    if not 1 <= limit <= PAGE_MAX:
        raise OutOfBounds(f"limit goes from 1 to {PAGE_MAX} occurrences a page; got {limit}")
    return calls.list_occurrences(name, before, limit)
