"""A timeline as SVG: a lane a worker, drawn with attributes alone, so that the strictest page may hold it."""

from collections.abc import Sequence
from html import escape
from typing import Final

from faultline.lab.drills.view.lanes import Timed, believed, caption_of, leases, spread
from faultline.lab.drills.view.story import MARKS, StoryMoment

WIDTH: Final = 940
LEFT: Final = 84
TOP: Final = 26
LANE: Final = 46
LETTER: Final = 6.4
"""How wide a letter of a caption is, about."""

COLOURS: Final = ("#0e7490", "#15803d", "#7e22ce", "#b45309", "#475569")
RED, AMBER, GREY, DARK = "#b91c1c", "#d97706", "#94a3b8", "#1e293b"
STEPS_SECONDS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 3600)
STEPS_MAX: Final = 8


def draw(moments: Sequence[StoryMoment], title: str) -> str:
    """The moments of one job as a picture that needs nothing but itself."""
    timed = [((moment.at - moments[0].at).total_seconds(), moment) for moment in moments]
    who = list(dict.fromkeys(moment.who for moment in moments if moment.what in MARKS))
    seconds = max((at for at, _ in timed), default=0.0) or 0.001
    height = TOP + LANE * len(who) + 6
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" role="img" font-family="ui-sans-serif, system-ui, sans-serif">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *_axis(seconds, height),
    ]
    for number, name in enumerate(who):
        own = [(at, moment) for at, moment in timed if moment.who == name]
        parts += _lane(name, own, COLOURS[number % len(COLOURS)], TOP + LANE * number + 18, seconds)
    return "\n".join([*parts, "</svg>"])


def _x(at: float, seconds: float) -> float:
    return round(LEFT + at / seconds * (WIDTH - LEFT - 24), 1)


def _axis(seconds: float, height: int) -> list[str]:
    step = next((step for step in STEPS_SECONDS if seconds / step <= STEPS_MAX), STEPS_SECONDS[-1])
    lines = []
    for number in range(min(int(seconds / step), STEPS_MAX) + 1):
        x = _x(number * step, seconds)
        lines.append(f'<line x1="{x}" y1="20" x2="{x}" y2="{height}" stroke="#e2e8f0"/>')
        lines.append(_text(x, 14, f"{number * step:g} s", GREY, anchor="middle"))
    return lines


def _lane(name: str, own: Sequence[Timed], colour: str, y: int, seconds: float) -> list[str]:
    lines = [_text(8, y + 4, name, colour, size=13, weight="bold")]
    lines.append(f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - 24}" y2="{y}" stroke="#e2e8f0"/>')
    held = leases(own, seconds)
    for start, end in held:
        lines.append(_bar(start, end, y, seconds, f'stroke="{colour}" stroke-width="5"'))
    for start, end in believed(own, held):
        lines.append(_bar(start, end, y, seconds, f'stroke="{RED}" stroke-width="3" stroke-dasharray="3 5"'))
    marked = [(at, moment) for at, moment in own if moment.what in MARKS]
    for at, moment in marked:
        lines.append(_mark(_x(at, seconds), y, MARKS[moment.what], colour))
    return lines + _captions(marked, colour, y + 20, seconds)


def _bar(start: float, end: float, y: int, seconds: float, how: str) -> str:
    return f'<line x1="{_x(start, seconds)}" y1="{y}" x2="{_x(end, seconds)}" y2="{y}" {how}/>'


def _mark(x: float, y: int, mark: str, colour: str) -> str:
    match mark:
        case "●":
            return f'<circle cx="{x}" cy="{y}" r="6" fill="{colour}"/>'
        case "■":
            return f'<rect x="{x - 6}" y="{y - 6}" width="12" height="12" fill="{AMBER}"/>'
        case "✗":
            cross = f"M{x - 6} {y - 6} L{x + 6} {y + 6} M{x + 6} {y - 6} L{x - 6} {y + 6}"
            return f'<path d="{cross}" stroke="{RED}" stroke-width="3.5" fill="none"/>'
        case "✓":
            tick = f"M{x - 7} {y} L{x - 2} {y + 6} L{x + 8} {y - 7}"
            return f'<path d="{tick}" stroke="{colour}" stroke-width="3.5" fill="none"/>'
        case _:
            return f'<line x1="{x}" y1="{y - 8}" x2="{x}" y2="{y + 8}" stroke="{RED}" stroke-width="2"/>'


def _captions(marked: Sequence[Timed], colour: str, y: int, seconds: float) -> list[str]:
    """Each as near to its mark as its neighbours and the edge allow; of too many the first give way."""
    letters = int((WIDTH - LEFT) / LETTER)
    while sum(len(caption_of(moment)) + 1 for _, moment in marked) > letters:
        marked = marked[1:]
    words = [caption_of(moment) for _, moment in marked]
    wanted = [round((_x(at, seconds) - LEFT) / LETTER) for at, _ in marked]
    places = spread(wanted, [len(text) for text in words], letters)
    colours = {"■": AMBER, "✗": RED, "╌": RED}
    return [
        _text(round(LEFT + place * LETTER, 1), y, text, colours.get(MARKS[moment.what], colour))
        for place, text, (_, moment) in zip(places, words, marked, strict=True)
    ]


def _text(
    x: float, y: float, words: str, colour: str, *, size: int = 11, weight: str = "", anchor: str = ""
) -> str:
    more = (f' font-weight="{weight}"' if weight else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{more}>{escape(words)}</text>'
