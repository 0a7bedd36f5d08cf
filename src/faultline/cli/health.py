"""`faultline health`: one line and an exit code, for whatever watches over us."""

from datetime import timedelta
from typing import Any

import click

from faultline.cli.failing import ERROR, line_of
from faultline.cli.options import DURATION, Command, told
from faultline.cli.terminal import Terminal
from faultline.cli.wording import span
from faultline.errors import CannotConnect, ConfigError, FaultlineError, ServerUnavailable
from faultline.store import calls
from faultline.store.sources import LATEST


@click.command(cls=Command)
@click.option(
    "--round-within",
    type=DURATION,
    default="30s",
    show_default=True,
    help="A watchdog round must be this young.",
)
@click.option(
    "--lag-max", type=DURATION, help="No queue may be further behind; a paused one may. [default: any]"
)
@told
def command(terminal: Terminal, round_within: timedelta, lag_max: timedelta | None) -> int:
    """Say whether the database answers, its schema is ours, and the watchdog makes its rounds.

    Exits with 0 when all is well and 1 when not.
    """
    facts = _facts(terminal)
    problems = facts.pop("problems") or _problems(facts, round_within, lag_max)
    document = {"healthy": not problems, **facts, "problems": problems}
    if terminal.json:
        terminal.give(document)
    elif problems:
        click.echo(f"unhealthy: {'; '.join(problems)}")
    elif not terminal.quiet:
        age, lag = span(facts["round_age_seconds"]), span(facts["lag_seconds"])
        click.echo(f"healthy: schema {LATEST}, last round {age} ago, lag {lag}")
    return ERROR if problems else 0


def _facts(terminal: Terminal) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "database": True,
        "schema_current": True,
        "round_age_seconds": None,
        "lag_seconds": None,
        "problems": [],
    }
    try:
        with terminal.database() as session:
            facts["round_age_seconds"], facts["lag_seconds"] = session.run(calls.health())
    except ConfigError:
        raise
    except FaultlineError as error:
        facts["database"] = not isinstance(error, CannotConnect | ServerUnavailable)
        facts["schema_current"] = False if facts["database"] else None
        facts["problems"] = [line_of(error)]
    return facts


def _problems(facts: dict[str, Any], round_within: timedelta, lag_max: timedelta | None) -> list[str]:
    problems = []
    age, lag = facts["round_age_seconds"], facts["lag_seconds"]
    if age is None:
        problems.append("no watchdog has ever made a round: no worker has run here")
    elif age > round_within.total_seconds():
        problems.append(
            f"the last watchdog round was {span(age)} ago: no worker runs, or none reaches the database"
        )
    if lag_max is not None and lag > lag_max.total_seconds():
        problems.append(f"the slowest queue is {span(lag)} behind")
    return problems
