"""A schedule, drawn for a terminal."""

from collections.abc import Sequence
from datetime import datetime

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from faultline.cli.format import ago, clock, first_line, safe, span
from faultline.cli.tables import draw, number, toned, wide, word
from faultline.schedules import Occurrence, ScheduleInfo

COLUMNS = (
    wide("schedule"), word(""), wide("when"), word("next"), word("last"), number("last job"), wide("task"),
    wide("queue"), wide("app"),
)  # fmt: skip
PAST_COLUMNS = (word("at"), word("how"), number("job"), word("state"), word("decided"))

TONES = {"failing": "bad", "ended": "stopped", "active": "ok"}


def row(schedule: ScheduleInfo) -> tuple[object, ...]:
    """A schedule as a line of the list."""
    state = "" if schedule.state == "active" else toned(schedule.state, TONES.get(schedule.state, ""))
    due = "-" if schedule.state in ("paused", "ended") else ago(schedule.next_at)
    return (
        schedule.name, state, schedule.when, due, ago(schedule.last_at), schedule.last_job, schedule.task,
        schedule.queue, schedule.app,
    )  # fmt: skip


def past_row(one: Occurrence) -> tuple[object, ...]:
    """An occurrence as a line."""
    state = "" if one.state is None else toned(one.state)
    return clock(one.at), one.how, one.job_id, state, ago(one.decided_at)


def facts_drawn(
    schedule: ScheduleInfo, coming: Sequence[datetime], past: Sequence[Occurrence]
) -> RenderableType:
    """All that is known of a schedule."""
    code = f"app {schedule.app}, release {schedule.release or 'none'}"
    paused = {"person": "by a person", "release": "the newest release of its app does not have it"}
    facts = {
        "when": schedule.when,
        "next": ", ".join(clock(at) for at in coming) or None,
        "queue": f"{schedule.queue}, priority {schedule.priority}",
        "args": schedule.args,
        "missed": schedule.missed,
        "overlap": schedule.overlap,
        "jitter": span(schedule.jitter.total_seconds()) if schedule.jitter else None,
        "from": "made by hand" if schedule.app is None else code,
        "paused": paused.get(schedule.paused_by or ""),
        "error": first_line(schedule.error) if schedule.error else None,
    }
    table = Table.grid(padding=(0, 2))
    for name, value in facts.items():
        if value is not None:
            table.add_row(Text(f"  {name}", style="dim"), Text(safe(value), overflow="fold"))
    state = toned(schedule.state, TONES.get(schedule.state, ""))
    return Group(
        Text.assemble((f"schedule {schedule.name}", "bold"), f"  {safe(schedule.task)}  ", state),
        table,
        Text(),
        draw(PAST_COLUMNS, (past_row(one) for one in past), "it was not due yet"),
    )
