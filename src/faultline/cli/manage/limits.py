"""`faultline limits`: how many jobs run at once, and how many start in a time."""

from typing import Any, Final

import click

from faultline import bounds
from faultline.bounds import counted
from faultline.cli.app_loading import load_app
from faultline.cli.options import LIMIT, CommandGroup, parsed, reason_option, told
from faultline.cli.tables import draw, number, wide, word
from faultline.cli.terminal import CommandSession, Terminal
from faultline.errors import InputError
from faultline.limit import COUNT_MAX, Limit, OnRetry, parse_rate
from faultline.store import calls, limit_sync
from faultline.store.rows import GateInfo, LimitInfo
from faultline.text.suggest import did_you_mean

UNITS: Final = {"s": 1, "min": 60, "h": 3_600, "day": 86_400}

NONE: Final = "none"
"""As a bound: remove it."""

COLUMNS = (
    wide("limit"), number("per key"), number("total"), word("rate"), number("held"), number("waiting"),
    wide("parent"), wide("tasks"),
)  # fmt: skip
GATES = (wide("key"), number("held"), number("waiting"), number("first job"))


def _count(text: str) -> int | str:
    if text == NONE:
        return NONE
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:20]) <= COUNT_MAX):
        raise InputError(f"{text[:40]!a} is not a whole number from 1 to {COUNT_MAX:,}, or {NONE}")
    return int(text)


def _rate(text: str) -> str:
    if text != NONE:
        parse_rate(text)
    return text


NAME = parsed("limit", bounds.check_limit_name)
TASK = parsed("task", bounds.check_task_name)
COUNT_OR_NONE = parsed("n", _count)
NAME_OR_NONE = NAME  # `none` is a name, and as a parent it removes one


@click.group(cls=CommandGroup)
def command() -> None:
    """Look at limits: list, show; change one at once: set; limit a task, or free it: tie, free; tell the
    limits of an app, as its workers do: sync."""


@command.command("list")
@told
def list_(terminal: Terminal) -> None:
    """List limits: their bounds, the jobs that hold a slot and those that wait for one."""
    with terminal.database() as session:
        found = session.run(calls.list_limits())
    terminal.show(
        [limit._asdict() for limit in found],
        lambda: draw(
            COLUMNS, (_row(limit) for limit in found), "no limit yet: @app.task(limit=Limit(total=5))"
        ),
    )


@command.command()
@click.argument("name", type=NAME)
@click.option("--limit", "most", type=LIMIT, default=20, show_default=True, help="At most so many keys.")
@told
def show(terminal: Terminal, name: str, most: int) -> None:
    """Show a limit with its keys, those first for which the most jobs wait."""
    with terminal.database() as session:
        limit = _known(session, name)
        gates = session.run(calls.list_gates(name, most))
    terminal.show(
        {**limit._asdict(), "keys": [gate._asdict() for gate in gates]},
        lambda: _drawn(limit, gates),
    )


@command.command("set")
@click.argument("name", type=NAME)
@click.option("--per-key", type=COUNT_OR_NONE, help="Jobs of one key at once.")
@click.option("--total", type=COUNT_OR_NONE, help="Jobs at once, of all keys together.")
@click.option("--rate", type=parsed("rate", _rate), help="Starts in a time, as 50/s or 100/min.")
@click.option("--burst", type=COUNT_OR_NONE, help="Starts at once after a quiet time.")
@click.option(
    "--on-retry", type=click.Choice(["yield", "block"]), help="With --per-key 1: what a retry does."
)
@click.option("--parent", type=NAME_OR_NONE, help="A limit that counts these jobs too.")
@reason_option
@told
def set_(
    terminal: Terminal,
    name: str,
    per_key: int | str | None,
    total: int | str | None,
    rate: str | None,
    burst: int | str | None,
    on_retry: OnRetry | None,
    parent: str | None,
    reason: str | None,
) -> None:
    """Make a limit, or change it at once. What is not named stays; `none` removes a bound.

    Lower bounds stop new starts and end nothing that runs. A worker of an app that declares the limit leaves
    the change alone until the app's own declaration changes.
    """
    changes = {
        "per_key": per_key, "total": total, "rate": rate, "burst": burst, "on_retry": on_retry,
        "parent": parent,
    }  # fmt: skip
    named = {option: value for option, value in changes.items() if value is not None}
    with terminal.database() as session:
        before = session.run(calls.list_limits(name))
        session.act(calls.set_limit(name, changed(before[0] if before else None, named)), reason)
        limit = _known(session, name)
    terminal.say(f"limit {name} is set: {told_bounds(limit)}")
    if terminal.json:
        terminal.give(limit._asdict())


@command.command()
@click.argument("task", type=TASK)
@click.argument("name", type=NAME)
@click.option("--key", help="The argument that the limit counts by, as tenant or order.tenant.")
@reason_option
@told
def tie(terminal: Terminal, task: str, name: str, key: str | None, reason: str | None) -> None:
    """Limit a task. Its jobs that wait move to the limit; those that run count from now on."""
    path = Limit(total=1, key=key).key_path
    with terminal.database() as session:
        _known(session, name)
        session.act(calls.limit_task(task, name, path), reason)
        moved = limit_sync.carry(limit_sync.move_jobs(task), session.run)
    _say_moved(terminal, f"task {task} has the limit {name}", moved)


@command.command()
@click.argument("task", type=TASK)
@reason_option
@told
def free(terminal: Terminal, task: str, reason: str | None) -> None:
    """Free a task of its limit. An app that declares it ties the task again with its next worker."""
    with terminal.database() as session:
        session.act(calls.limit_task(task, None), reason)
        moved = limit_sync.carry(limit_sync.move_jobs(task), session.run)
    _say_moved(terminal, f"task {task} has no limit", moved)


@command.command()
@click.argument("app", metavar="MODULE:APP")
@told
def sync(terminal: Terminal, app: str) -> None:
    """Tell the database the limits of an app, for workers that reach it through a server alone."""
    declared = limit_sync.declare(load_app(app).registry)
    with terminal.database() as session:
        moved = limit_sync.carry(declared, session.run)
    _say_moved(terminal, "the limits of the app are set", moved)


def changed(old: LimitInfo | None, changes: dict[str, Any]) -> Limit:
    """A limit with other bounds; what is not named stays.

    >>> changed(None, {"total": 5, "rate": "2/s"}).per_second
    2.0
    """
    fields: dict[str, Any] = {} if old is None else {
        "per_key": old.per_key, "total": old.total, "rate": old.rate, "burst": old.burst,
        "on_retry": old.on_retry, "parent": old.parent,
    }  # fmt: skip
    if "rate" in changes:
        fields["burst"] = None  # the burst of another rate means nothing
    fields |= {name: None if value == NONE else value for name, value in changes.items()}
    if fields.get("per_key") != 1:
        fields["on_retry"] = changes.get("on_retry", "yield")
    return Limit(**fields, key="any" if fields.get("per_key") else None)


def told_bounds(limit: LimitInfo) -> str:
    """The bounds of a limit in words."""
    said = [
        f"{limit.per_key} per key" if limit.per_key else "",
        f"{limit.total} in total" if limit.total else "",
        f"{told_rate(limit.rate)}, {limit.burst} at once" if limit.rate else "",
        f"under {limit.parent}" if limit.parent else "",
    ]
    return ", ".join(filter(None, said)) or "no bound"


def told_rate(rate: float | None) -> str:
    """A rate in the unit in which it is a whole number, if there is one.

    >>> told_rate(50.0), told_rate(0.1), told_rate(100 / 60), told_rate(1 / 604_800)
    ('50/s', '6/min', '100/min', '0.142857/day')
    """
    if rate is None:
        return ""
    in_units = {unit: rate * seconds for unit, seconds in UNITS.items()}
    whole = (
        unit for unit, value in in_units.items() if round(value) >= 1 and abs(value - round(value)) < 1e-6
    )
    large = (unit for unit, value in in_units.items() if value >= 1)
    unit = next(whole, next(large, "day"))
    return f"{in_units[unit]:g}/{unit}"


def _row(limit: LimitInfo) -> tuple[object, ...]:
    return (
        limit.name, limit.per_key or "", limit.total or "", told_rate(limit.rate), limit.held, limit.waiting,
        limit.parent or "", ",".join(limit.tasks),
    )  # fmt: skip


def _drawn(limit: LimitInfo, gates: list[GateInfo]) -> Any:
    from rich.console import Group
    from rich.text import Text

    from faultline.cli.format import safe

    tokens = "" if limit.tokens is None else f", {limit.tokens} may start now"
    return Group(
        Text.assemble((safe(f"limit {limit.name}"), "bold"), f"  {safe(told_bounds(limit))}{tokens}"),
        Text(
            f"  {counted(limit.held, 'job')} hold a slot, {counted(limit.waiting, 'job')} wait", style="dim"
        ),
        draw(
            GATES,
            ((gate.key or f"#{gate.gate}", gate.held, gate.waiting, gate.first_job) for gate in gates),
            "",
        ),
    )


def _known(session: CommandSession, name: str) -> LimitInfo:
    limits = {limit.name: limit for limit in session.run(calls.list_limits())}
    if name not in limits:
        better = did_you_mean(name, limits) or "."
        raise InputError(f"no limit is called {name}{better} `faultline limits list` names them")
    return limits[name]


def _say_moved(terminal: Terminal, what: str, moved: int) -> None:
    terminal.say(f"{what}; {counted(moved, 'job')} moved")
    if terminal.json:
        terminal.give({"moved": moved})
