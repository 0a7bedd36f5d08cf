"""`faultline schedules`: what is enqueued at which times."""

import json
import sys
from datetime import datetime
from typing import Any, Final

import click

from faultline import bounds
from faultline.args.document import check_document
from faultline.bounds import counted
from faultline.cli.app_loading import load_app
from faultline.cli.exit_codes import ERROR
from faultline.cli.format import ago, clock, first_line, safe
from faultline.cli.jobs.enqueue import read_object
from faultline.cli.options import (
    DURATION,
    LIMIT,
    MOMENT,
    CommandGroup,
    parsed,
    reason_option,
    told,
    whole,
    yes_option,
)
from faultline.cli.schedule_drawing import COLUMNS, PAST_COLUMNS, facts_drawn, past_row, row
from faultline.cli.tables import draw
from faultline.cli.terminal import CommandSession, Terminal
from faultline.errors import JobNotFound, OutOfBounds
from faultline.job import NewJob
from faultline.schedules import Cron, ScheduleInfo, ScheduleSpec, every
from faultline.schedules.ranges import coming_times, next_times, past_times
from faultline.schedules.schedule_spec import check_schedule_name
from faultline.schedules.timing import At, Every, timing_of
from faultline.store import calls
from faultline.task import MAX_ATTEMPTS
from faultline.text.suggest import did_you_mean

NAMES_COMPARED: Final = 10_000
NAME = parsed("name", check_schedule_name)
PERIOD = parsed("period", lambda text: every(DURATION.convert(text, None, None)))


@click.group(cls=CommandGroup)
def command() -> None:
    """What is enqueued at which times: list, show, next, history; set, delete, pause, resume, trigger,
    backfill; sync those in an app's code."""


@command.command("list")
@click.option("--after", type=NAME, help="The last name of the page before.")
@click.option("--limit", type=LIMIT, default=100, show_default=True)
@told
def list_(terminal: Terminal, after: str | None, limit: int) -> None:
    """List schedules by name: their times, the next one, and the state.

    failing: its next time cannot be computed, or it cannot be fired; `show` says why.
    """
    with terminal.database() as session:
        found = session.run(calls.list_schedules(None, after, limit))
    terminal.show(
        [schedule.document() for schedule in found],
        lambda: draw(COLUMNS, (row(schedule) for schedule in found), "no schedule yet"),
    )


@command.command()
@click.argument("name", type=NAME)
@told
def show(terminal: Terminal, name: str) -> None:
    """Show a schedule: its times and options, the next five times, and the last ten with their jobs."""
    with terminal.database() as session:
        found = _one(session, name)
        past = session.run(calls.list_occurrences(name, None, 10))
    coming = _coming(found, 5)
    document = {
        **found.document(), "next": [at.isoformat() for at in coming],
        "occurrences": [one._asdict() for one in past],
    }  # fmt: skip
    terminal.show(document, lambda: facts_drawn(found, coming, past))


@command.command("next")
@click.argument("name", type=NAME, required=False)
@click.option("--cron", metavar="EXPR", help="Try an expression, instead of a schedule.")
@click.option("--tz", metavar="ZONE", help="Its time zone. [default: UTC]")
@click.option("--count", type=LIMIT, default=5, show_default=True)
@told
def next_(terminal: Terminal, name: str | None, cron: str | None, tz: str | None, count: int) -> None:
    """Say when a schedule will be due; with --cron, when an expression would be, without a database."""
    if (name is None) == (cron is None):
        raise click.UsageError("name a schedule, or an expression to try with --cron")
    if cron is not None:
        timing = _timing(terminal, cron, tz)
        assert isinstance(timing, Cron)
        terminal.say(timing.explain())
        coming = next_times(timing, datetime.now().astimezone(), count)
    else:
        with terminal.database() as session:
            coming = _coming(_one(session, str(name)), count)
    if terminal.json:
        terminal.give([at.isoformat() for at in coming])
    elif coming:
        for at in coming:
            click.echo(f"{_in_zone(at, tz)}  {ago(at)}")
    else:
        terminal.remark("never: it is paused, or has ended")


@command.command()
@click.argument("name", type=NAME)
@click.option("--before", type=MOMENT, help="Older ones than this.")
@click.option("--limit", type=LIMIT, default=50, show_default=True)
@told
def history(terminal: Terminal, name: str, before: datetime | None, limit: int) -> None:
    """List the times at which a schedule was due, newest first, with their jobs."""
    with terminal.database() as session:
        past = session.run(calls.list_occurrences(name, before, limit))
        if not past:
            _one(session, name)
    terminal.show(
        [one._asdict() for one in past],
        lambda: draw(PAST_COLUMNS, (past_row(one) for one in past), "it was not due yet"),
    )


@command.command("set")
@click.argument("name", type=NAME)
@click.option("--task", type=parsed("task", bounds.check_task_name), required=True, help="What is enqueued.")
@click.option("--cron", metavar="EXPR", help="Five fields, or six with seconds first: '0 3 * * *'.")
@click.option("--tz", metavar="ZONE", help="The time zone of --cron: Europe/Berlin. [default: UTC]")
@click.option("--every", "period", type=PERIOD, help="A fixed time apart: 5m, 1h30m.")
@click.option("--at", "moment", type=MOMENT, help="Once: 2030-01-31T09:00+01:00.")
@click.option(
    "--args", "args_text", default="{}", metavar="JSON", help="The arguments; - reads them from stdin."
)
@click.option("--app", "app_path", metavar="MODULE:APP", help="Check the args against the task in this app.")
@click.option(
    "-q", "--queue", type=parsed("queue", bounds.check_queue_name), help="[default: default, or the task's]"
)
@click.option("--priority", type=whole(bounds.PRIORITY_MIN, bounds.PRIORITY_MAX), help="[default: 0]")
@click.option("--max-attempts", type=whole(1, bounds.ATTEMPTS_MAX), help=f"[default: {MAX_ATTEMPTS}]")
@click.option("--lease", "lease_for", type=DURATION, help="Lease for its jobs, other than their worker's.")
@click.option("--timeout", type=DURATION, help="The hard end of an attempt. [default: 1h]")
@click.option("--missed", type=click.Choice(["skip", "once", "all"]), default="once", show_default=True,
              help="What to do about times at which no watchdog ran.")  # fmt: skip
@click.option("--overlap", type=click.Choice(["allow", "skip", "cancel"]), default="allow", show_default=True,
              help="What to do while the job before has not ended.")  # fmt: skip
@click.option("--jitter", type=DURATION, default="0s", help="Put each job off by a random time below this.")
@reason_option
@told
def set_(terminal: Terminal, /, name: str, reason: str | None, app_path: str | None, **asked: Any) -> None:
    """Make a schedule, or change one.

        faultline schedules set nightly --task clean_up --cron '0 3 * * *' --tz Europe/Berlin

    One that is in an app's code is changed there.
    """
    spec = _spec(terminal, name, app_path, asked)
    with terminal.database() as session:
        state = session.act(calls.set_schedule(spec.document()), reason)[0]
        found = _one(session, name)
    words = {"new": "made", "changed": "changed", "same": "as it was"}
    terminal.say(f"schedule {name} {words[state]}: {found.when}")
    for at in _coming(found, 1):
        terminal.say(f"next: {clock(at)}, {ago(at)}")
    if terminal.json:
        terminal.give({"done": words[state], **found.document()})


@command.command()
@click.argument("names", type=NAME, metavar="NAME...", nargs=-1, required=True)
@reason_option
@yes_option
@told
def delete(terminal: Terminal, names: tuple[str, ...], reason: str | None, yes: bool) -> None:
    """Forget schedules; their jobs stay. One that is in an app's code is made again by its next worker."""
    named = f"schedule {names[0]}" if len(names) == 1 else counted(len(names), "schedule")
    with terminal.database() as session:
        found = [_one(session, name) for name in names]
        terminal.confirm(f"Delete {named}?", yes)
        for schedule in found:
            session.act(calls.delete_schedule(schedule.name, reason), reason)
            terminal.say(f"schedule {schedule.name} deleted")
            if schedule.app is not None:
                terminal.remark(f"it is in the code of app {schedule.app}: its next worker makes it again")
    if terminal.json:
        terminal.give([{"name": name, "deleted": True} for name in names])


@command.command()
@click.argument("names", type=NAME, metavar="NAME...", nargs=-1, required=True)
@reason_option
@told
def pause(terminal: Terminal, names: tuple[str, ...], reason: str | None) -> None:
    """Let schedules enqueue nothing; their jobs go on."""
    with terminal.database() as session:
        for schedule in [_one(session, name) for name in names]:
            session.act(calls.pause_schedule(schedule.name, reason), reason)
            terminal.say(f"schedule {schedule.name} paused")
    if terminal.json:
        terminal.give([{"name": name, "paused": True} for name in names])


@command.command()
@click.argument("names", type=NAME, metavar="NAME...", nargs=-1, required=True)
@reason_option
@told
def resume(terminal: Terminal, names: tuple[str, ...], reason: str | None) -> None:
    """Let schedules go on from now; `backfill` makes up for what fell into the pause."""
    with terminal.database() as session:
        for schedule in [_one(session, name) for name in names]:
            session.act(calls.resume_schedule(schedule.name, reason), reason)
            terminal.say(f"schedule {schedule.name} resumed")
    if terminal.json:
        terminal.give([{"name": name, "paused": False} for name in names])


@command.command()
@click.argument("name", type=NAME)
@reason_option
@told
def trigger(terminal: Terminal, name: str, reason: str | None) -> None:
    """Enqueue a job of a schedule now, besides its times; also while it is paused."""
    with terminal.database() as session:
        _one(session, name)
        job_id, queue, _ = session.act(calls.trigger_schedule(name, reason), reason)
        session.run(calls.wake(queue))
    if terminal.json:
        terminal.give({"name": name, "job_id": job_id, "queue": queue})
    else:
        click.echo(job_id if terminal.quiet else f"job {job_id} enqueued in {queue}")


@command.command()
@click.argument("name", type=NAME)
@click.option("--since", type=MOMENT, required=True, help="The first moment: 2030-01-31T00:00Z.")
@click.option("--until", type=MOMENT, help="Before this moment. [default: now]")
@click.option("--preview", is_flag=True, help="Say for which times there would be a job, and do nothing.")
@reason_option
@yes_option
@told
def backfill(
    terminal: Terminal, name: str, since: datetime, until: datetime | None, preview: bool, reason: str | None,
    yes: bool,
) -> None:  # fmt: skip
    """Enqueue a job for each past time in a range that has none; at most 1,000 times at once."""
    with terminal.database() as session:
        found = _one(session, name)
        times = past_times(found, since, until)
        seen = session.run(calls.backfill(name, found.revision, times, preview=True))
        new = sum(one.is_new for one in seen)
        if not preview and new:
            terminal.confirm(f"Enqueue {counted(new, 'job')} of {name} in {found.queue}?", yes)
            seen = session.act(
                calls.backfill(name, found.revision, times, preview=False, reason=reason), reason
            )
            session.run(calls.wake(found.queue))
    if terminal.json:
        terminal.give([one._asdict() for one in seen])
        return
    for one in seen if preview else []:
        click.echo(f"{_in_zone(one.at, found.time_zone)}  {'a job' if one.is_new else 'has one'}")
    done = "would be enqueued" if preview else "enqueued"
    kept = f", {len(seen) - new} had one already" if len(seen) > new else ""
    terminal.say(f"{counted(new, 'job')} {done}{kept}")


@command.command()
@click.argument("app_path", metavar="MODULE:APP")
@told
def sync(terminal: Terminal, app_path: str) -> int:
    """Bring the schedules of an app to those in its code, as its workers do at their start.

    For apps whose workers have no database, or before the first worker of a release starts.
    """
    from faultline.worker.schedule_sync import NAMELESS, app_release, told_in_a_line

    tasks = load_app(app_path).registry
    release, app = app_release(tasks), tasks.app_name or NAMELESS
    documents = [spec.document() for spec in tasks.schedules.values()]
    with terminal.database() as session:
        found = session.run(calls.sync_schedules(app, release, documents))
    if terminal.json:
        terminal.give([one._asdict() for one in found])
    for one in found:
        if one.state == "older":
            terminal.remark(f"release {one.said} of app {app} has run before this one: nothing was changed")
        elif one.state == "foreign":
            terminal.remark(f"schedule {one.name} is of {one.said or 'no app'}: it was not changed")
        elif one.state == "refused":
            terminal.remark(f"schedule {one.name} was not written: {first_line(one.said)}")
    terminal.say(told_in_a_line(found) or f"app {app} has no schedules")
    return ERROR if any(one.state in ("older", "foreign", "refused") for one in found) else 0


def _one(session: CommandSession, name: str) -> ScheduleInfo:
    """The schedule of this name; a mistyped one is told with the near ones, before anything is done."""
    found = session.run(calls.list_schedules(name))
    if found:
        return found[0]
    known = [schedule.name for schedule in session.run(calls.list_schedules(None, None, NAMES_COMPARED))]
    raise JobNotFound(
        f"there is no schedule {name}{did_you_mean(name, known) or '.'} Nothing was done. "
        "`faultline schedules list` names them all"
    )


def _spec(terminal: Terminal, name: str, app_path: str | None, asked: dict[str, Any]) -> ScheduleSpec:
    times = [asked.pop(kind) for kind in ("cron", "period", "moment")]
    tz, text = asked.pop("tz"), asked.pop("args_text")
    given = [time for time in times if time is not None]
    if len(given) != 1:
        raise click.UsageError("say when, once: --cron, --every or --at")
    timing = _timing(terminal, given[0], tz)
    job = _job(asked, app_path, sys.stdin.read() if text == "-" else text)
    rest = {option: asked[option] for option in ("missed", "overlap", "jitter")}
    return ScheduleSpec(name=name, timing=timing, new=lambda: job, **rest)


def _timing(terminal: Terminal, when: Any, tz: str | None) -> Cron | Every | At:
    """The times; the wrong place of an expression is marked on lines of its own, before the error's line."""
    try:
        return timing_of(when, tz)
    except OutOfBounds as error:
        said, *marked = str(error).splitlines()
        for line in marked:
            click.echo(safe(line), err=True)
        raise OutOfBounds(said) from None


def _job(asked: dict[str, Any], app_path: str | None, text: str) -> NewJob:
    options = {
        name: asked[name]
        for name in ("queue", "priority", "max_attempts", "lease_for", "timeout")
        if asked[name] is not None
    }
    read = read_object(text)
    if "lease_for" in options:
        bounds.check_lease_for(options["lease_for"])
    if "timeout" in options:
        bounds.check_timeout(options["timeout"])
    if app_path is None:
        check_document(text.encode(errors="surrogatepass"), "the args", dict)
        return NewJob(task=asked["task"], args=json.dumps(read), **{"max_attempts": MAX_ATTEMPTS, **options})
    spec = load_app(app_path).registry.find(asked["task"])
    defaults = {
        "queue": spec.queue, "priority": spec.priority, "max_attempts": spec.max_attempts,
        "timeout": spec.timeout, "lease_for": spec.lease_for,
    }  # fmt: skip
    return NewJob(task=asked["task"], args=spec.codec.encode((), read), **{**defaults, **options})


def _coming(schedule: ScheduleInfo, count: int) -> list[datetime]:
    try:
        return coming_times(schedule, count)
    except OutOfBounds:  # its expression is wrong: the row says so
        return []


def _in_zone(at: datetime, tz: str | None) -> str:
    from faultline.schedules.zones import zone_of

    there = at.astimezone(zone_of(tz)) if tz else at.astimezone()
    return f"{there:%a %Y-%m-%d %H:%M:%S %Z}"
