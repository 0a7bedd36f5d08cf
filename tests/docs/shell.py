"""The lines of the documents' shell blocks, and the requests among them as a script."""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from scripts.docs.blocks import Block, blocks, documents

ASSIGNMENT = re.compile(r"[A-Z_]+=")

LASTING = ("worker", "server", "dev", "demo", "drill", "bench", "conformance")
"""Commands that stay until they are stopped, or take minutes: they have tests of their own."""

OF_THE_WHOLE_SERVER = ("roles",)
"""What these make outlives the database of a test; tests/cli runs them with names of its own."""


class Command(NamedTuple):
    """One command of a shell block."""

    file: str
    line: int
    text: str
    words: list[str]

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def program(self) -> str:
        return self.words[0].rpartition("/")[2] if self.words else ""

    @property
    def is_short(self) -> bool:
        """Whether it ends by itself, at once, with nothing left to the reader (`...`)."""
        left_out = {*LASTING, *OF_THE_WHOLE_SERVER}
        return not ("..." in self.text or "--listen" in self.words or left_out & set(self.words[:2]))


def shell_blocks() -> Iterator[Block]:
    for file in documents():
        yield from (block for block in blocks(file) if block.language in ("sh", "console"))


def all_commands() -> list[Command]:
    return [command for block in shell_blocks() for command in commands(block)]


def commands(block: Block) -> list[Command]:
    return [
        Command(block.file, block.line, part, without_settings(part))
        for line in typed(block)
        for part in re.split(r"; (?=echo)", uncommented(line))
        if part
    ]


def typed(block: Block) -> list[str]:
    """What is typed: of a console all after `$ `, of other blocks every line."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.language == "console":
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return lines


def uncommented(line: str) -> str:
    return re.sub(r"(^|\s+)#.*$", "", line).strip()


def without_settings(line: str) -> list[str]:
    """The words of a command, without the variables that are set for it and the file that it writes."""
    if re.match(r"[A-Z_]+=\$\(", line):
        line = line.partition("$(")[2].removesuffix(")")
    words = shlex.split(line)
    while words and ASSIGNMENT.match(words[0]):
        words.pop(0)
    return words[: words.index(">")] if ">" in words else words


def requests(file: str) -> list[tuple[str, str]]:
    """The requests of a document and their variables; with each the status that a comment below it tells."""
    found: list[tuple[str, str]] = []
    for block in shell_blocks():
        for line in typed(block) if block.file == file else ():
            if told := re.match(r"# (\d{3}) ", line):
                found[-1] = (found[-1][0], told[1])
            if re.match(r"curl |[A-Z]+=", line):
                found.append((uncommented(line), ""))
    return found
