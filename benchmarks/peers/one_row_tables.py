"""The page's part on handlers that insert a row: the goals, the tables, and how each library does it."""

from benchmarks.peers import musts, tables
from benchmarks.peers.figures import ONE_ROW, ONE_ROW_WAL, OURS, Run
from benchmarks.peers.musts import Must

WHAT = """\
Each handler inserts one row into a table of its own. Faultline commits the row and the job's success in one
transaction, so there is one row for each job whatever crashes. The peers insert and commit, and then record
the success, as their users do: after a crash in between the row is written again."""

HOW = """\
One worker process starts on a queue of up to {rows:,} jobs. The clock runs from the first handler's start
until the library's own tables say that nothing is unfinished, or for {rows_cap:g} s (`*`). Handlers of
libraries that lend them no connection have a pool of ten. After each run the rows are counted: there are as
many as jobs, or the step has failed."""

PEERS = ("graphile-worker", "pg-boss", "pgqueuer", "awa", "chancy", "procrastinate", "django-tasks-db")

GOALS = tuple(Must(ONE_ROW, OURS, peer, 1) for peer in PEERS)


def sections(run: Run) -> list[str]:
    """The goals, the two tables, and how each system inserts."""
    lines = ["", WHAT, "", HOW.format(**run.data["config"]), "", *musts.table(run, GOALS)]
    for measure in (ONE_ROW, ONE_ROW_WAL):
        if run.ranked(measure):
            lines += ["", f"### {measure.title}", "", tables.standing(run, measure), ""]
            lines += tables.table(run, measure)
    return [*lines, "", *_ways(run)]


def _ways(run: Run) -> list[str]:
    lines = ["| system | versions | its handler |", "| --- | --- | --- |"]
    for system, meta in run.data["meta"].items():
        versions = ", ".join(f"{package} {version}" for package, version in meta["versions"].items())
        lines.append(f"| {system} | {versions} | {meta.get('row', '')} |")
    return lines
