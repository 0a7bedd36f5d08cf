"""The page's tables of rates and times, the best first and our own row in bold."""

from benchmarks.peers.figures import (
    BULK,
    COMMIT50,
    COMMIT99,
    DRAIN1,
    DRAIN2,
    KILLED,
    OFFERED50,
    OFFERED99,
    OURS,
    PICKUP50,
    PICKUP99,
    SINGLE,
    SUSTAINED,
    WAL,
    WHOLE50,
    WHOLE99,
    Measure,
    Run,
    Spread,
)

PLOTS = {
    DRAIN1: "peers-drain-one",
    DRAIN2: "peers-drain-two",
    SINGLE: "peers-enqueue-single",
    BULK: "peers-enqueue-bulk",
    PICKUP50: "peers-pickup-median",
    PICKUP99: "peers-pickup-p99",
    WAL: "peers-wal",
    SUSTAINED: "peers-sustained",
    OFFERED99: "peers-offered-p99",
}
"""Which measures are drawn, and the names of their pictures."""

SECTIONS = (
    DRAIN1, DRAIN2, SINGLE, BULK, PICKUP50, PICKUP99, COMMIT50, COMMIT99, WHOLE50, WHOLE99, SUSTAINED,
    OFFERED50, OFFERED99, WAL, KILLED,
)  # fmt: skip

KEPT_UP = 0.99


def sections(run: Run) -> list[str]:
    """One part of the page for each measure: where we stand in a sentence, the table, the picture."""
    lines: list[str] = []
    for measure in SECTIONS:
        if run.ranked(measure):
            lines += ["", f"### {measure.title}", "", standing(run, measure), "", *table(run, measure)]
            if measure in PLOTS:
                lines += ["", f"![{measure.title}](images/{PLOTS[measure]}.svg)"]
    return lines


def standing(run: Run, measure: Measure) -> str:
    """Where Faultline stands, said as plainly when it is behind."""
    if not measure.compared:
        return "What an ordinary VACUUM has to clear away later."
    best = run.best_peer(measure)
    ratio = run.ratio(measure, OURS, best) if best else None
    if best is None or ratio is None:
        return "Faultline was not measured beside a peer here."
    ahead = ratio.middle >= 1 if measure.more_is_better else ratio.middle <= 1
    if ahead:
        return f"Faultline is ahead: {ratio.middle:.2f} × the best peer's figure ({best})."
    return f"**Faultline is behind**: {ratio.middle:.2f} × the best peer's figure ({best})."


def table(run: Run, measure: Measure) -> list[str]:
    better = "more" if measure.more_is_better else "less"
    lines = [
        f"| system | {measure.unit}, {better} is better: median (lowest–highest) | × the best peer |",
        "| --- | ---: | ---: |",
    ]
    return lines + [_line(run, measure, system, spread) for system, spread in run.ranked(measure)]


def _line(run: Run, measure: Measure, system: str, spread: Spread) -> str:
    best = run.best_peer(measure) if measure.compared else None
    ratio = run.ratio(measure, system, best) if best else None
    times = f"{ratio.middle:.2f}" if ratio else ""
    name = f"**{system}**" if run.is_ours(system) else system
    return f"| {name}{_mark(run, system, measure)} | {spread.show(measure.form)} | {times} |"


def _mark(run: Run, system: str, measure: Measure) -> str:
    """A star for a drain that did not come to its end, or an offered rate that was not kept up with."""
    phase = "one_row" if measure.keys[0].startswith("one_row") else measure.keys[0].split("_")[0]
    rows = run.data["throughput"][system]
    cut = not all(row.get(f"{phase}_complete", True) for row in rows)
    late = any(row.get(f"{phase}_kept", 1.0) < KEPT_UP for row in rows)
    return " \\*" if cut or late else ""
