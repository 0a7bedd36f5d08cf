"""All pages of the site as Markdown: those of the repository, and those that are generated from it."""

import shutil
from pathlib import Path

from scripts.docs import (
    cli_reference,
    http_reference,
    links,
    protocol_reference,
    python_reference,
    sql_reference,
)
from scripts.docs.blocks import labelled

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SETTINGS = Path(__file__).with_name("mkdocs.yml")
WITHOUT_NAVIGATION = "---\nhide: [navigation]\n---\n"
SOURCES = (links, python_reference, cli_reference, sql_reference, http_reference, protocol_reference)


def site_pages() -> dict[str, str]:
    """Every page by its path on the site; its code blocks name their language."""
    found = {path: labelled(text) for source in SOURCES for path, text in source.pages().items()}
    return {**found, "index.md": WITHOUT_NAVIGATION + found["index.md"]}


def gather(folder: Path) -> None:
    """Write the pages to a folder, beside images and other files of `docs/`."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("*.md"))
    for path, text in site_pages().items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def settings() -> str:
    """The settings of MkDocs, with every page of the navigation named."""
    return "".join(_named(line) for line in SETTINGS.read_text().splitlines(keepends=True))


def _named(line: str) -> str:
    before, item, entry = line.partition("- ")
    if not entry.endswith("/*\n"):
        return line
    folder = entry.removesuffix("/*\n")
    files = sorted(file for file in (DOCS / folder).glob("*.md") if file.name != "README.md")
    return "".join(f"{before}{item}{folder}/{file.name}\n" for file in files)
