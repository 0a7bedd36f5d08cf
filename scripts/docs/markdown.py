"""Markdown that the generated pages are made of: tables, code blocks, and docstrings."""

import ast
import re
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, or nothing at all where it would have no rows."""
    lines = ["| " + " | ".join(_cell(text) for text in row) + " |" for row in rows]
    if not lines:
        return ""
    return "\n".join(["| " + " | ".join(head) + " |", "| " + " | ".join("---" for _ in head) + " |", *lines])


def _cell(text: str) -> str:
    """On one line, with no bar outside code: inside it a bar parts no cells."""
    return re.sub(
        r"`[^`]*`|\|", lambda found: found[0].replace("|", "\\|", len(found[0]) == 1), " ".join(text.split())
    )


def fence(language: str, text: str) -> str:
    """A code block, with a fence longer than any in its text."""
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{ticks}{language}\n{text.rstrip()}\n{ticks}"


def page(*parts: str) -> str:
    """Parts with an empty line between them; empty parts are left out."""
    return "\n\n".join(part.strip("\n") for part in parts if part.strip()) + "\n"


def docstring(text: str) -> str:
    """A docstring as Markdown: sessions (`>>>`), indented text and lines of code become code blocks."""
    return page(*map(_paragraph, _paragraphs(text)))


def _paragraphs(text: str) -> list[str]:
    """Parted at empty lines, but for those inside an indented block."""
    found: list[str] = []
    for part in re.split(r"\n[ \t]*\n", text.strip("\n")):
        if found and found[-1].startswith("    ") and part.startswith("    "):
            found[-1] += f"\n\n{part}"
        else:
            found.append(part)
    return found


def _paragraph(text: str) -> str:
    before, session, after = text.partition(">>> ")
    if session and (not before or before.endswith("\n")):
        return page(before, fence("pycon", session + after))
    if text.startswith("    "):
        body = re.sub(r"^    ", "", text, flags=re.MULTILINE)
        return fence("text" if "─" in body else "python", body)
    return fence("python", text) if is_code(text) else text


def is_code(text: str) -> bool:
    """Whether a paragraph is a line of Python rather than a sentence."""
    try:
        (only,) = ast.parse(text.strip()).body
    except (SyntaxError, ValueError):
        return False
    return not (isinstance(only, ast.Expr) and isinstance(only.value, ast.Name | ast.Constant))
