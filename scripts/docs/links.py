"""Links of the documents, made to work on the site: what they lead to in the repository is a page."""

import os.path
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.docs.markdown import fence, page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "STYLE.md": "project/style.md",
}
"""Documents outside `docs/`, and where they stand on the site."""

LANGUAGES = {
    ".py": "python",
    ".sql": "sql",
    ".js": "javascript",
    ".proto": "protobuf",
    ".json": "json",
    ".tla": "text",
}
SKIPPED = ("__pycache__", "node_modules")
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)((?:#[^)\s]*)?\))")
CODE = re.compile(r"^ *(`{3,}).*?^ *\1$|`[^`\n]+`", re.DOTALL | re.MULTILINE)


def address(target: Path) -> str:
    """Where a file or folder of the repository stands on the site, below `docs/`."""
    if target.is_relative_to(DOCS):
        return str(target.relative_to(DOCS))
    path = str(target.relative_to(ROOT))
    return PAGES.get(path) or f"source/{path}" + ("" if path.endswith(".md") else ".md")


def rewritten(markdown: str, file: Path, at: str) -> str:
    """A document of the repository as the page `at`: its links lead to pages of the site."""

    def lead(found: re.Match[str]) -> str:
        target = Path(os.path.normpath(file.parent / found[2]))
        if not target.exists():
            return found[0]
        return f"{found[1]}{os.path.relpath(address(target), Path(at).parent)}{found[3]}"

    return "".join(text if code else LINK.sub(lead, text) for code, text in parts(markdown))


def parts(markdown: str) -> Iterator[tuple[bool, str]]:
    """A document cut into code and other text."""
    at = 0
    for found in CODE.finditer(markdown):
        yield False, markdown[at : found.start()]
        yield True, found[0]
        at = found.end()
    yield False, markdown[at:]


def targets(file: Path) -> set[Path]:
    """The files and folders that a document links to."""
    texts = (text for code, text in parts(file.read_text()) if not code)
    found = (Path(os.path.normpath(file.parent / link[1])) for text in texts for link in LINK.findall(text))
    return {target for target in found if target.exists()}


def pages() -> dict[str, str]:
    """Every document, and every source outside `docs/` that one of them links to."""
    made: dict[str, str] = {}
    waiting = [*(ROOT / path for path in PAGES), *sorted(DOCS.rglob("*.md"))]
    seen = set(waiting)
    while waiting:
        target = waiting.pop(0)
        made[address(target)] = _page(target)
        fresh = sorted(_to_show(target) - seen)
        seen.update(fresh)
        waiting += fresh
    return made


def _to_show(file: Path) -> set[Path]:
    """What a document links to and the site would not have; what else is in `docs/` is copied as it is."""
    document = file / "README.md" if file.is_dir() else file
    linked = targets(document) if document.suffix == ".md" and document.exists() else set()
    return {target for target in linked if not target.is_relative_to(DOCS)}


def _page(target: Path) -> str:
    """A document as it is; sources in full, those of a folder below its README."""
    if target.suffix == ".md":
        return rewritten(target.read_text(), target, address(target))
    if target.is_file():
        return page(f"# {target.relative_to(ROOT)}", _source(target))
    readme = target / "README.md"
    heading = f"# {target.relative_to(ROOT)}"
    introduction = rewritten(readme.read_text(), readme, address(target)) if readme.exists() else heading
    files = sorted(path for path in target.rglob("*") if path != readme and shown(path))
    return page(introduction, *(page(f"## {file.relative_to(target)}", _source(file)) for file in files))


def shown(path: Path) -> bool:
    return path.is_file() and not any(
        part in SKIPPED or part.startswith(".") for part in path.relative_to(ROOT).parts
    )


def _source(file: Path) -> str:
    return fence(LANGUAGES.get(file.suffix, "text"), file.read_text())
