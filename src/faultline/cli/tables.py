"""Tables: a heading a column, a line a row, the same look everywhere."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from rich.table import Table
from rich.text import Text

from faultline.cli.format import safe

TONES: Final = {
    "succeeded": "green", "running": "cyan", "queued": "", "dead": "red", "failed": "red",
    "expired": "yellow", "cancelled": "dim", "released": "dim", "snoozed": "dim", "refused": "bold red",
    "ok": "green", "warn": "yellow", "bad": "bold red", "working": "green", "silent": "yellow",
    "stopped": "dim", "paused": "yellow",
}  # fmt: skip
"""The colours of the words for jobs, leases, checks and workers."""


@dataclass(frozen=True, slots=True)
class Column:
    """A heading; flexible columns shrink where the terminal is narrow, by an ellipsis or by folding."""

    title: str
    justify: Literal["left", "right"] = "left"
    flexible: Literal["", "ellipsis", "fold"] = ""


def number(title: str) -> Column:
    return Column(title, justify="right")


def word(title: str) -> Column:
    return Column(title)


def wide(title: str) -> Column:
    return Column(title, flexible="ellipsis")


def prose(title: str) -> Column:
    return Column(title, flexible="fold")


def draw(columns: Sequence[Column], rows: Iterable[Sequence[object]], empty: str) -> Table | Text:
    """A table of plain lines; an empty one becomes the sentence that says so."""
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column.title, justify=column.justify, no_wrap=not column.flexible)
    for row in rows:
        table.add_row(*(_cell(value, column) for value, column in zip(row, columns, strict=True)))
    return table if table.row_count else Text(empty, style="dim")


def _cell(value: object, column: Column) -> Text:
    if isinstance(value, Text):
        return value
    return Text(safe(value), no_wrap=column.flexible != "fold", overflow=column.flexible or None)


def toned(word: str, like: str = "") -> Text:
    """A word in its colour, or in that of another."""
    return Text(safe(word), style=TONES.get(like or word, ""), no_wrap=True)
