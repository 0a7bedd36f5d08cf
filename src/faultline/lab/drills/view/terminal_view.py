"""What came of drills, on a terminal: a line each, or everything about one of them."""

from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from faultline.lab.drills.drill_results import DrillResult
from faultline.lab.drills.view.drill_verdict import counts_line
from faultline.lab.drills.view.drill_verdict import table as verdict_table
from faultline.lab.drills.view.trace import Trace

STYLES = {"kept": "bold green", "BROKEN": "bold red", "VOID": "bold yellow", "skipped": "bold yellow"}


def show_line(result: DrillResult, console: Console) -> None:
    """One drill of many: its verdict, how long it took, and how often what happened."""
    line = Text.assemble((f"{result.word:<8}", STYLES[result.word]), (result.drill.name, "bold"))
    if result.runs:
        line.append(f"  {result.seconds:.1f} s  ").append(counts_line(result.told.verdict), "dim")
    else:
        line.append(f": {result.skipped}", "yellow")
    console.print(line)


def show_sum(results: list[DrillResult], console: Console) -> None:
    """How many drills came to which verdict."""
    words = Counter(result.word for result in results)
    told = ", ".join(f"{times} {word}" for word, times in words.items())
    console.print(f"\n{len(results)} drills: {told}", style="bold", highlight=False)


def show_result(result: DrillResult, console: Console) -> None:
    """The run worth telling; and of many runs how many kept every promise."""
    told = result.told
    console.print(Text.assemble("\n", (result.drill.name, "bold"), f"\n{result.drill.summary}\n"))
    console.print(trace_table(told.trace))
    console.print()
    for title, timeline in told.timelines:
        if title:
            console.print(title, style="bold", highlight=False)
        console.print(timeline)
        console.print()
    console.print(verdict_table(told.verdict))
    console.print(f"\n{counts_line(told.verdict)}", style="dim", highlight=False)
    if len(result.runs) > 1:
        kept = sum(run.verdict.kept for run in result.runs)
        each = result.seconds / len(result.runs)
        console.print(
            f"\n{kept} of {len(result.runs)} runs kept every promise, {each:.2f} s a run", style="bold"
        )


def trace_table(trace: Trace) -> Table:
    """What the processes said, for people: seconds, process, event, facts."""
    shown = Table(
        box=None, padding=(0, 1), show_header=False, pad_edge=False, title="Trace", title_justify="left"
    )
    shown.title_style = "bold"
    for options in ({"justify": "right", "style": "dim"}, {}, {}):
        shown.add_column(no_wrap=True, **options)  # type: ignore[arg-type]
    shown.add_column(overflow="fold", style="dim")
    first = trace.signs[0].seconds if trace.signs else 0.0
    for sign in trace.signs:
        style = "bold red" if sign.what in ("stale_write_blocked", "commit_refused") else "default"
        facts = " ".join(
            f"{name}={value}" for name, value in sign.facts.items() if name not in ("task", "queue")
        )
        if sign.is_event:
            shown.add_row(f"{sign.seconds - first:.3f}", sign.who, Text(sign.what, style), Text(facts))
        else:
            shown.add_row(f"{sign.seconds - first:.3f}", sign.who, Text(sign.level), Text(sign.what))
    return shown
