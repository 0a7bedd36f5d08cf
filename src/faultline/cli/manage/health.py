"""`faultline health`: one line and an exit code, for probes and monitors."""

from datetime import timedelta
from typing import Any

import click

from faultline.cli.exit_codes import ERROR, line_of
from faultline.cli.format import span
from faultline.cli.options import DURATION, CliCommand, told
from faultline.cli.terminal import Terminal
from faultline.doctor.checks import CHORES_SECONDS_MAX
from faultline.errors import CannotConnect, ConfigError, FaultlineError, ServerUnavailable


@click.command(cls=CliCommand)
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
@click.option("--worker", metavar="NAME", help="The worker of this name, or one of its group, must be there.")
@click.option(
    "--server", metavar="URL",
    help="Ask a `faultline server` instead whether it is ready; needs no database.",
)  # fmt: skip
@click.option(
    "--alive", is_flag=True,
    help="Look at the file of the worker or server here instead, FAULTLINE_ALIVE_FILE; needs no database.",
)  # fmt: skip
@click.option(
    "--alive-within", type=DURATION, default="30s", show_default=True, help="The file must be this young."
)
@told
def command(terminal: Terminal, /, server: str | None, alive: bool, **asked: Any) -> int:
    """Say whether the database answers, its schema is ours, and the watchdog makes its rounds.

    With --server or --alive: whether that process is well, which a database that is away does not change.
    Exits with 0 when all is well, 1 when not, and 2 when it was not asked rightly, as without a database.
    """
    from faultline.cli.manage import probes

    if server is not None and alive:
        raise click.UsageError("--server and --alive are two questions; ask one of them")
    within: timedelta = asked.pop("alive_within")
    if server is not None:
        facts, well = probes.of_a_server(server)
    elif alive:
        facts, well = probes.of_a_file(within)
    else:
        facts, well = _of_the_database(terminal, **asked)
    return _tell(terminal, facts, well)


def _tell(terminal: Terminal, facts: dict[str, Any], well: str) -> int:
    problems = facts["problems"]
    if terminal.json:
        terminal.give({"healthy": not problems, **facts})
    elif problems:
        click.echo(f"unhealthy: {'; '.join(problems)}")
    elif not terminal.quiet:
        click.echo(f"healthy: {well}")
    return ERROR if problems else 0


def _of_the_database(
    terminal: Terminal, round_within: timedelta, lag_max: timedelta | None, worker: str | None
) -> tuple[dict[str, Any], str]:
    from faultline.store.sql_files import LATEST

    facts = _facts(terminal, worker)
    if not facts["problems"]:
        facts["problems"] = _problems(facts, round_within, lag_max, worker)
    age, lag = span(facts["round_age_seconds"]), span(facts["lag_seconds"])
    return facts, f"schema {LATEST}, last round {age} ago, lag {lag}"


def _facts(terminal: Terminal, worker: str | None) -> dict[str, Any]:
    from faultline.cli.manage import probes
    from faultline.store import calls

    facts: dict[str, Any] = {
        "database": True,
        "schema_current": True,
        "round_age_seconds": None,
        "lag_seconds": None,
        "chores_age_seconds": None,
        "problems": [],
    }
    try:
        with terminal.database() as session:
            vital = session.run(calls.health())
            facts["round_age_seconds"], facts["lag_seconds"], facts["chores_age_seconds"] = vital
            if worker is not None:
                facts["worker"] = probes.of_a_worker(session, worker)
    except ConfigError:
        raise
    except FaultlineError as error:
        facts["database"] = not isinstance(error, CannotConnect | ServerUnavailable)
        facts["schema_current"] = False if facts["database"] else None
        facts["problems"] = [line_of(error)]
    return facts


def _problems(
    facts: dict[str, Any], round_within: timedelta, lag_max: timedelta | None, worker: str | None
) -> list[str]:
    problems = []
    age, lag = facts["round_age_seconds"], facts["lag_seconds"]
    if age is None:
        problems.append("no watchdog has made a round: no worker runs here, or none ran for long enough")
    elif age > round_within.total_seconds():
        problems.append(
            f"the last watchdog round was {span(age)} ago: no worker runs, or none reaches the database"
        )
    elif (chores := facts["chores_age_seconds"]) is not None and chores > CHORES_SECONDS_MAX:
        problems.append(
            f"rounds are made, and the leader did its chores {span(chores)} ago: see `faultline doctor`"
        )
    if lag_max is not None and lag > lag_max.total_seconds():
        problems.append(f"the slowest queue is {span(lag)} behind")
    if worker is not None and facts["worker"] != "working":
        state = {"gone": "gone, or never came"}.get(facts["worker"], facts["worker"])
        problems.append(f"the worker {worker} is {state}; see `faultline workers --all`")
    return problems
