"""The timeline of one job: a lane a worker, then each moment in words, the refused write in red."""

import io
import re
from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.table import Table
from rich.text import Text

from faultline.lab.drills.view.lanes import REFUSED, Lane
from faultline.lab.drills.view.story import MARKS, StoryMoment

COLUMNS_MAX: Final = 84
LABEL_COLUMNS: Final = 8
COLOURS: Final = ("cyan", "green", "magenta", "yellow")
STEPS_SECONDS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 3600)
STEPS_MAX: Final = 6

PLAIN: Final = str.maketrans("━╌●✓✗■", "=.o+x#")
"""What stands for our marks where there is only ASCII."""

FONT_FACE: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


class Timeline:
    """Something rich can print, as wide as the terminal or 84 columns, in colour or without."""

    def __init__(self, moments: Sequence[StoryMoment]) -> None:
        self.moments = list(moments)
        played = [moment.who for moment in self.moments if moment.what in MARKS]
        self._colours = {
            who: COLOURS[place % len(COLOURS)] for place, who in enumerate(dict.fromkeys(played))
        }

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.moments:
            yield Text("no trace of the job", "dim")
            return
        drawn = Group(*self._chart(options.max_width), Text(), self._steps())
        if not options.ascii_only:
            yield drawn
            return
        for line in console.render_lines(drawn, options, pad=False):
            yield Text("".join(piece.text for piece in line).translate(PLAIN))

    def _seconds(self, moment: StoryMoment) -> float:
        return (moment.at - self.moments[0].at).total_seconds()

    def _chart(self, columns: int) -> list[Text]:
        width = max(20, min(columns, COLUMNS_MAX) - LABEL_COLUMNS - 1)
        seconds = max(self._seconds(self.moments[-1]), 0.001)
        lines = [Text(" " * LABEL_COLUMNS) + _axis(width, seconds)]
        for who, colour in self._colours.items():
            own = [(self._seconds(moment), moment) for moment in self.moments if moment.who == who]
            lane, captions = Lane(own, colour, width, seconds).draw()
            lines += [_label(who, colour) + lane, _label("", colour) + captions]
        return lines

    def _steps(self) -> Table:
        shown = Table(box=None, padding=(0, 1), show_header=False, pad_edge=False)
        shown.add_column(justify="right", no_wrap=True, style="dim")
        shown.add_column(no_wrap=True)
        shown.add_column(overflow="fold")
        for moment in self.moments:
            style = REFUSED if moment.what == "refused" else "default"
            name = Text(moment.who, self._colours.get(moment.who, "default"))
            shown.add_row(f"{self._seconds(moment):.3f} s", name, Text(moment.words, style))
        return shown


def _label(who: str, colour: str) -> Text:
    return Text(f"{who:<{LABEL_COLUMNS}}"[:LABEL_COLUMNS], f"bold {colour}")


def _axis(width: int, seconds: float) -> Text:
    line = [" "] * width
    step = next((step for step in STEPS_SECONDS if seconds / step <= STEPS_MAX), STEPS_SECONDS[-1])
    for number in range(min(int(seconds / step), STEPS_MAX) + 1):
        label = f"{number * step:g} s"
        at = round(number * step / seconds * (width - 1))
        if at + len(label) <= width:
            line[at : at + len(label)] = label
    return Text("".join(line), "dim")


def export_svg(*parts: Any, title: str) -> str:
    """What a terminal would show, as a picture that needs nothing else: rich's own downloads a font."""
    console = Console(
        record=True, width=COLUMNS_MAX, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    for part in parts:
        console.print(part)
    drawn = FONT_FACE.sub("", console.export_svg(title=title))
    return drawn.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace")
