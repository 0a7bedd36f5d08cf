"""`faultline queues`: their depth and lag; pause and resume."""

from datetime import timedelta

import click

from faultline import bounds
from faultline.bounds import counted
from faultline.cli.exit_codes import ERROR
from faultline.cli.format import span
from faultline.cli.known_names import check_queues, new_option
from faultline.cli.options import CommandGroup, parsed, reason_option, told, whole
from faultline.cli.tables import draw, number, toned, wide, word
from faultline.cli.terminal import Terminal
from faultline.store import calls
from faultline.store.rows import QueueInfo
from faultline.text.durations import parse_duration

COLUMNS = (
    wide("queue"), word(""), number("due"), number("running"), number("scheduled"), number("dead"),
    number("lag"), word("keeps"),
)  # fmt: skip
BATCH = 500
"""Queues removed in one call: claims wait during its check of them."""
QUEUE = parsed("queue", bounds.check_queue_name)


@click.group(cls=CommandGroup)
def command() -> None:
    """Look at queues: list; stop claims and let them go on: pause, resume; choose what is kept: keep; bound
    them: set; forget those that are no longer used: remove."""


@command.command("list")
@told
def list_(terminal: Terminal) -> None:
    """List queues: jobs due, running, scheduled and dead; lag is the age of the first due job.

    Scheduled are those that wait for their moment, at first or between attempts; `jobs list` has them as
    queued.
    """
    with terminal.database() as session:
        found = session.run(calls.list_queues())
    terminal.show(
        [queue._asdict() for queue in found],
        lambda: draw(COLUMNS, (_row(queue) for queue in found), "no queue yet: the first job makes it"),
    )


def _row(queue: QueueInfo) -> tuple[object, ...]:
    paused = toned("paused") if queue.paused else toned("full") if queue.full else ""
    lag = span(queue.lag_seconds)
    return queue.queue, paused, queue.due, queue.running, queue.scheduled, queue.dead, lag, queue.keep


@command.command()
@click.argument("names", type=QUEUE, metavar="NAME...", nargs=-1, required=True)
@new_option
@reason_option
@told
def pause(terminal: Terminal, names: tuple[str, ...], new: bool, reason: str | None) -> None:
    """Stop claims from queues; what runs goes on. With --new, a queue not yet seen starts paused."""
    with terminal.database() as session:
        check_queues(session, names, new)
        for name in names:
            session.act(calls.pause(name), reason)
            terminal.say(f"queue {name} paused")
    if terminal.json:
        terminal.give([{"queue": name, "paused": True} for name in names])


@command.command()
@click.argument("names", type=QUEUE, metavar="NAME...", nargs=-1, required=True)
@reason_option
@told
def resume(terminal: Terminal, names: tuple[str, ...], reason: str | None) -> None:
    """Let claims from queues go on."""
    with terminal.database() as session:
        check_queues(session, names)
        for name in names:
            session.act(calls.resume(name), reason)
            session.run(calls.wake(name))
            terminal.say(f"queue {name} resumed")
    if terminal.json:
        terminal.give([{"queue": name, "paused": False} for name in names])


@command.command()
@click.argument("what", type=click.Choice(["full", "outline", "nothing"]))
@click.argument("names", type=QUEUE, metavar="NAME...", nargs=-1, required=True)
@new_option
@reason_option
@told
def keep(terminal: Terminal, what: str, names: tuple[str, ...], new: bool, reason: str | None) -> None:
    """Choose what the ledger keeps of successes from now on.

    full: the entry with args and result, the default. outline: the entry alone. nothing: no entry, the
    fastest; a lost reply to a commit then cannot be looked up. Failures are always kept.
    """
    with terminal.database() as session:
        check_queues(session, names, new)
        for name in names:
            session.act(calls.set_retention(name, what), reason)
            terminal.say(f"queue {name} keeps {what} of its successes")
    if terminal.json:
        terminal.give([{"queue": name, "keep": what} for name in names])


def _depth(text: str) -> int:
    return 0 if text == "none" else int(whole(1, bounds.DEPTH_MAX).convert(text, None, None))


def _age(text: str) -> timedelta:
    return timedelta(0) if text == "none" else bounds.check_age_after(parse_duration(text))


def _bounds_of(queue: QueueInfo) -> str:
    most = f"at most {counted(queue.max_depth, 'due job')}" if queue.max_depth else "any number of jobs"
    age = queue.age_after_seconds
    return most if age is None else f"{most}, which move ahead by one priority each {span(age)}"


@command.command("set")
@click.argument("names", type=QUEUE, metavar="NAME...", nargs=-1, required=True)
@click.option("--max-depth", type=parsed("n|none", _depth), help="The most due jobs; more are refused.")
@click.option(
    "--age-after",
    type=parsed("duration|none", _age),
    help="Jobs move ahead by one priority each such age.",
)
@new_option
@reason_option
@told
def set_(
    terminal: Terminal,
    names: tuple[str, ...],
    max_depth: int | None,
    age_after: timedelta | None,
    new: bool,
    reason: str | None,
) -> None:
    """Set how many due jobs queues may hold, and how their jobs age.

    An enqueue in a full queue is refused by name (QueueFull); retries and replays are not. The bound is soft:
    a watchdog counts each second, and more may come until it has.
    """
    if max_depth is None and age_after is None:
        raise click.UsageError("say what to set: --max-depth or --age-after, `none` to take it away")
    with terminal.database() as session:
        check_queues(session, names, new)
        for name in names:
            session.act(calls.configure_queue(name, max_depth, age_after), reason)
            (queue,) = session.run(calls.list_queues(name))
            terminal.say(f"queue {name} holds {_bounds_of(queue)}")
    if terminal.json:
        terminal.give([{"queue": name, "max_depth": max_depth, "age_after": age_after} for name in names])


@command.command()
@click.argument("names", type=QUEUE, metavar="NAME...", nargs=-1)
@click.option("--unused", is_flag=True, help="All that hold no job and that nothing in the ledger tells of.")
@reason_option
@told
def remove(terminal: Terminal, names: tuple[str, ...], unused: bool, reason: str | None) -> int:
    """Forget queues that are empty and unused; one that is used again is made again.

    A queue that holds jobs, dead ones too, stays, and so does one that the ledger tells of. Exits with 1
    where one that was named stays.
    """
    if unused == bool(names):
        raise click.UsageError("name the queues to remove, or say --unused for all that can go")
    with terminal.database() as session:
        asked = [queue.queue for queue in session.run(calls.list_queues())] if unused else list(names)
        batches = (asked[first : first + BATCH] for first in range(0, len(asked), BATCH))
        found = [queue for batch in batches for queue in session.act(calls.remove_queues(batch), reason)]
    gone = [queue for queue in found if queue.removed]
    for queue in found:
        if queue.removed:
            terminal.say(f"queue {queue.queue} removed")
        elif not unused:
            terminal.say(f"queue {queue.queue} stays: {queue.said}")
    if unused:
        terminal.say(f"removed {counted(len(gone), 'queue')}, kept {len(found) - len(gone)}")
    if terminal.json:
        terminal.give([queue._asdict() for queue in found])
    return 0 if unused or len(gone) == len(found) else ERROR
