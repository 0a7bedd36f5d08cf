"""A worker's lane on the timeline: solid while its lease runs, dotted while only the worker believes so."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.text import Text

from faultline.lab.drills.view.story import ENDS, MARKS, StoryMoment

REFUSED: Final = "bold red"
CAPTIONS: Final = {"succeeded": "committed", "has its answers": "answered", "lease_ends": "lease runs out"}


Timed = tuple[float, StoryMoment]
"""A moment, and how many seconds it came after the first one."""


class Cell(NamedTuple):
    """One character of a lane."""

    letter: str = " "
    style: str = "default"


class Lane:
    """One worker on a line of fixed width, with a second line for what its marks mean."""

    def __init__(
        self, moments: list[tuple[float, StoryMoment]], colour: str, width: int, seconds: float
    ) -> None:
        self._moments = moments
        self._colour = f"bold {colour}"
        self._seconds = seconds
        self._line = [Cell()] * width
        self._captions = [Cell()] * width
        self._wanted: list[tuple[int, str, str]] = []

    def draw(self) -> tuple[Text, Text]:
        """The lane, and the captions below it."""
        self._paint_leases()
        for at, moment in self._moments:
            self._mark(at, moment)
        self._write_captions()
        return _text(self._line), _text(self._captions)

    def _paint_leases(self) -> None:
        held = leases(self._moments, self._seconds)
        for start, end in held:
            self._paint(start, end, Cell("━", self._colour))
        for start, end in believed(self._moments, held):
            self._paint(start, end, Cell("╌", "red"))

    def _mark(self, at: float, moment: StoryMoment) -> None:
        if (mark := MARKS.get(moment.what)) is None:
            return
        style = {"■": "bold yellow", "╌": "red", "✗": REFUSED}.get(mark, self._colour)
        self._put(at, mark, style, caption_of(moment))

    def _put(self, at: float, mark: str, style: str, caption: str) -> None:
        place = self._place(at)
        self._line[place] = Cell(mark, style)
        self._wanted.append((place, caption, style))

    def _write_captions(self) -> None:
        """Each as near to its mark as its neighbours and the edge allow; of too many the first give way."""
        wanted = self._wanted
        while wanted and sum(len(words) + 1 for _, words, _ in wanted) > len(self._captions):
            wanted = wanted[1:]
        starts = spread(
            [place for place, _, _ in wanted], [len(words) for _, words, _ in wanted], len(self._captions)
        )
        for start, (_, words, style) in zip(starts, wanted, strict=True):
            self._captions[start : start + len(words)] = [Cell(letter, style) for letter in words]

    def _place(self, at: float) -> int:
        last = len(self._line) - 1
        return max(0, min(last, round(at / self._seconds * last)))

    def _paint(self, start: float, end: float, cell: Cell) -> None:
        for place in range(self._place(start), self._place(end) + 1):
            self._line[place] = cell


def leases(moments: Sequence[Timed], seconds: float) -> list[tuple[float, float]]:
    """From each claim to the moment its lease was over in the database's eyes."""
    spans = []
    for start, claim in moments:
        if claim.what == "claimed":
            ends = [
                at
                for at, moment in moments
                if (moment.what in ENDS and moment.token == claim.token)
                or (moment.what == "lease_ends" and at >= start)
            ]
            spans.append((start, min(ends, default=seconds)))
    return spans


def believed(moments: Sequence[Timed], held: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """From a lease's end to the refusal: the time in which only the worker thought it held the job."""
    refused = [(at, moment.token) for at, moment in moments if moment.what == "refused"]
    spans = []
    for at, token in refused:
        claimed = [start for start, moment in moments if (moment.what, moment.token) == ("claimed", token)]
        over = [end for start, end in held if start in claimed and end < at]
        spans += [(end, at) for end in over]
    return spans


def caption_of(moment: StoryMoment) -> str:
    """The word or two below a mark."""
    return f"token {moment.token}" if moment.what == "claimed" else CAPTIONS.get(moment.what, moment.what)


def spread(places: list[int], lengths: list[int], width: int) -> list[int]:
    """Where words must start so that none touches the next: pushed right by others, back by the edge."""
    starts: list[int] = []
    end = 0
    for place, length in zip(places, lengths, strict=True):
        starts.append(max(place, end))
        end = starts[-1] + length + 1
    edge = width
    for last in reversed(range(len(starts))):
        starts[last] = min(starts[last], edge - lengths[last])
        edge = starts[last] - 1
    return starts


def _text(cells: list[Cell]) -> Text:
    line = Text.assemble(*((cell.letter, cell.style) for cell in cells), no_wrap=True)
    line.rstrip()
    return line
