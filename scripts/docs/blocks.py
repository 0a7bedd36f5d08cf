"""The code blocks of the documents: where they stand, and what they are written in."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)(?P=ticks)$",
    re.DOTALL | re.MULTILINE,
)
COMMANDS = (
    "faultline",
    "make",
    "pip",
    "python",
    "curl",
    "export",
    "docker",
    "npm",
    "kubectl",
    "systemctl",
    "install",
)
ASSIGNMENT = re.compile(r"[A-Z_]+=")


class Block(NamedTuple):
    """One code block."""

    file: str
    line: int
    language: str
    text: str

    @property
    def first_line(self) -> str:
        return self.text.strip().partition("\n")[0]


def documents() -> list[Path]:
    """What a reader is given: the README, the pages of `docs/`, and how to contribute."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(file: Path) -> Iterator[Block]:
    """The code blocks of a document, each with a language: one without a label has that of its first line."""
    text = file.read_text()
    for found in FENCE.finditer(text):
        body = re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
        line = text.count("\n", 0, found.start()) + 1
        yield Block(str(file.relative_to(ROOT)), line, found["language"] or language(body), body)


def language(text: str) -> str:
    """What a block without a label is written in: commands, commands with what they print, or plain text."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    first = lines[0] if lines else ""
    if first.startswith("$ "):
        return "console"
    return "sh" if first.split(" ")[0] in COMMANDS or ASSIGNMENT.match(first) else "text"


def labelled(markdown: str) -> str:
    """A page whose blocks all name their language, so that they are coloured."""

    def label(found: re.Match[str]) -> str:
        named = found["language"] or language(found["text"].replace(f"\n{found['indent']}", "\n").lstrip())
        opening, closing = f"{found['indent']}{found['ticks']}{named}", f"{found['indent']}{found['ticks']}"
        return f"{opening}\n{found['text']}{closing}"

    return FENCE.sub(label, markdown)
