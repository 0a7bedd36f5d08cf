"""The timeline as SVG: throughput above, a lane of faults below it for each kind."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from proof.nemesis.plan import KINDS
from proof.nemesis.storm import Struck
from proof.nemesis.watch import Sample

WIDTH: Final = 1120
LEFT: Final = 92
RIGHT: Final = 16
CHART_HEIGHT: Final = 150
ROW_HEIGHT: Final = 13
LANES: Final = ("processes", "server", "network", "replies")
MARK_WIDTH_MIN: Final = 3.0
LETTER_WIDTH: Final = 5.0
Phase = tuple[str, float, float]

STYLE: Final = """
svg { font: 11px system-ui, sans-serif; color: #1f2933; background: #ffffff }
.text { fill: currentColor } .dim { fill: #6b7785 } .grid { stroke: #d9dfe6; stroke-width: 1 }
.storm { fill: #f5f7fa } .heal { fill: #e9f6ee } .away { fill: #f6d4d4 }
.done { fill: #9fc5e8; stroke: #2b6cb0; stroke-width: 1.2 }
.reaped { fill: #d97706 } .refused { fill: #c53030 }
.processes { fill: #7c3aed } .server { fill: #c2410c } .network { fill: #0f766e } .replies { fill: #be185d }
.label { fill: #ffffff; pointer-events: none } .small { font-size: 9px; pointer-events: none }
.missed { fill: none; stroke: #9aa5b1; stroke-dasharray: 2 2 }
@media (prefers-color-scheme: dark) {
  .label { fill: #16191d }
  svg { color: #e4e7eb; background: #16191d } .dim { fill: #9aa5b1 } .grid { stroke: #333a42 }
  .storm { fill: #1d2126 } .heal { fill: #16281d } .away { fill: #4a2323 }
  .done { fill: #2c4a68; stroke: #63b3ed }
  .processes { fill: #a78bfa } .server { fill: #fb923c } .network { fill: #2dd4bf } .replies { fill: #f472b6 }
  .reaped { fill: #fbbf24 } .refused { fill: #fc8181 }
}
"""


def timeline(struck: Sequence[Struck], samples: Sequence[Sample], phases: Sequence[Phase]) -> str:
    """One picture of a run, complete in itself."""
    end = max((*(phase[2] for phase in phases), *(one.ended for one in struck), 1.0))
    scale = Scale(end)
    rows = {lane: list(_rows([one for one in struck if one.lane == lane], scale)) for lane in LANES}
    top = 34 + CHART_HEIGHT + 46
    height = top + sum(_lane_height(rows[lane]) for lane in LANES) + 24
    parts = [*_phases(phases, scale, height), *_grid(scale, height), *_chart(samples, scale)]
    parts += list(_ticks(samples, scale, 34 + CHART_HEIGHT + 8))
    for lane in LANES:
        parts += list(_lane(lane, rows[lane], top, scale))
        top += _lane_height(rows[lane])
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img"><title>faults and throughput</title><style>{STYLE}</style>\n'
        f"{body}\n</svg>"
    )


class Scale:
    """Seconds of the run to places on the page."""

    def __init__(self, end: float) -> None:
        self.end = end

    def x(self, at: float) -> float:
        return round(LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, max(0.0, at / self.end)), 1)


def rates(samples: Sequence[Sample], field: str = "succeeded") -> Iterator[tuple[float, float, float]]:
    """From, to, and how many a second in between, over samples that could be taken."""
    known = [(sample.at, getattr(sample, field)) for sample in samples if getattr(sample, field) is not None]
    for (start, before), (end, after) in itertools.pairwise(known):
        yield start, end, max(0, after - before) / max(end - start, 0.001)


def _phases(phases: Iterable[Phase], scale: Scale, height: int) -> Iterator[str]:
    for name, start, end in phases:
        left, width = scale.x(start), scale.x(end) - scale.x(start)
        yield f'<rect class="{name}" x="{left}" y="24" width="{width:.1f}" height="{height - 46}"/>'
        near_end = left > WIDTH - 80
        x, anchor = (WIDTH - RIGHT, "end") if near_end else (left + 4, "start")
        yield f'<text class="text" x="{x}" y="18" text-anchor="{anchor}">{escape(name)}</text>'


def _grid(scale: Scale, height: int) -> Iterator[str]:
    step = next(step for step in (5, 10, 15, 30, 60, 120, 300, 600, 3600) if scale.end / step <= 24)
    for second in range(0, int(scale.end) + 1, step):
        x = scale.x(second)
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="24" y2="{height - 22}"/>'
        yield f'<text class="dim" x="{x}" y="{height - 8}" text-anchor="middle">{second} s</text>'


def _chart(samples: Sequence[Sample], scale: Scale) -> Iterator[str]:
    """Successes a second, and red where the server did not answer."""
    found = list(rates(samples))
    highest = max((rate for *_, rate in found), default=1.0) or 1.0
    bottom = 34 + CHART_HEIGHT
    for gone in _away(samples):
        left, width = scale.x(gone[0]), max(1.0, scale.x(gone[1]) - scale.x(gone[0]))
        yield f'<rect class="away" x="{left}" y="34" width="{width:.1f}" height="{CHART_HEIGHT}"/>'
    if found:
        points = [f"{scale.x(found[0][0])},{bottom}"]
        for start, end, rate in found:
            y = round(bottom - CHART_HEIGHT * rate / highest, 1)
            points += [f"{scale.x(start)},{y}", f"{scale.x(end)},{y}"]
        points.append(f"{scale.x(found[-1][1])},{bottom}")
        yield f'<polygon class="done" points="{" ".join(points)}"/>'
    yield f'<text class="dim" x="{LEFT - 8}" y="44" text-anchor="end">{highest:.0f}/s</text>'
    yield f'<text class="text" x="{LEFT - 8}" y="{bottom - 4}" text-anchor="end">done</text>'


def _away(samples: Sequence[Sample]) -> Iterator[tuple[float, float]]:
    for sample, after in itertools.pairwise(samples):
        if sample.succeeded is None:
            yield sample.at, after.at


def _ticks(samples: Sequence[Sample], scale: Scale, top: int) -> Iterator[str]:
    """Two rows of marks: leases that were reaped, and late writes that were refused."""
    for row, field in enumerate(("reaped", "refused")):
        y = top + row * 15
        yield f'<text class="text" x="{LEFT - 8}" y="{y + 9}" text-anchor="end">{field}</text>'
        for start, end, rate in rates(samples, field):
            if rate > 0:
                many = round(rate * (end - start))
                yield (
                    f'<rect class="{field}" x="{scale.x(end)}" y="{y}" width="3" height="11">'
                    f"<title>{many} {field} by {end:.1f} s</title></rect>"
                )


def _rows(struck: Sequence[Struck], scale: Scale) -> Iterator[list[Struck]]:
    """Lay faults that overlap on the page in rows of their own."""
    rows: list[list[Struck]] = []
    for one in sorted(struck, key=lambda one: one.began):
        free = (row for row in rows if scale.x(row[-1].ended) + 5 < scale.x(one.began))
        row = next(free, None)
        if row is None:
            rows.append([one])
        else:
            row.append(one)
    return iter(rows)


def _lane_height(rows: Sequence[Sequence[Struck]]) -> int:
    return 10 + ROW_HEIGHT * max(1, len(rows))


def _lane(name: str, rows: Sequence[Sequence[Struck]], top: int, scale: Scale) -> Iterator[str]:
    yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{top}" y2="{top}"/>'
    yield f'<text class="text" x="{LEFT - 8}" y="{top + 14}" text-anchor="end">{name}</text>'
    for number, row in enumerate(rows):
        for one in row:
            left = scale.x(one.began)
            width = max(MARK_WIDTH_MIN, scale.x(one.ended) - left)
            told = f"{one.began:.1f} s {one.kind}: {KINDS[one.kind].says} ({one.remark})"
            kind, y = "missed" if one.missed else name, top + 5 + number * ROW_HEIGHT
            yield (
                f'<rect class="{kind}" x="{left}" y="{y}" width="{width:.1f}" height="{ROW_HEIGHT - 2}" '
                f'rx="1.5"><title>{escape(told)}</title></rect>'
            )
            if width > LETTER_WIDTH * len(one.kind) + 6:
                shade = "dim" if one.missed else "label"
                yield f'<text class="{shade} small" x="{left + 3}" y="{y + 8.5}">{one.kind}</text>'
