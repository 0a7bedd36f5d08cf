"""Check the built site: nothing is loaded from another server, and every link leads somewhere."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
ELSEWHERE = re.compile(r"^(?:https?:)?//")
RELATIONS_THAT_LOAD = {
    "stylesheet",
    "icon",
    "preload",
    "preconnect",
    "dns-prefetch",
    "modulepreload",
    "manifest",
}
IN_A_STYLESHEET = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])((?:https?:)?//[^'\")\s]+)")


class Document(HTMLParser):
    """What a page loads, links to, and can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in LOADED and given.get(LOADED[tag]):
            self.loaded.append(given[LOADED[tag]])
        if tag == "link" and RELATIONS_THAT_LOAD & set(given.get("rel", "").split()):
            self.loaded.append(given.get("href", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        self.anchors.update(given[name] for name in ("id", "name") if name in given)


def faults(site: Path) -> list[str]:
    """Everything that is wrong with the site, a line each."""
    pages = {file: Document(file.read_text()) for file in sorted(site.rglob("*.html"))}
    return [f"{where}: {what}" for where, what in (*_from_elsewhere(site, pages), *_to_nowhere(site, pages))]


def _from_elsewhere(site: Path, pages: dict[Path, Document]) -> Iterator[tuple[str, str]]:
    for file, page in pages.items():
        for address in filter(ELSEWHERE.match, page.loaded):
            yield str(file.relative_to(site)), f"loads {address}"
        if 'class="mermaid"' in file.read_text():
            yield str(file.relative_to(site)), "has a diagram that the browser would fetch a program for"
    for file in sorted(site.rglob("*.css")):
        for address in IN_A_STYLESHEET.findall(file.read_text()):
            yield str(file.relative_to(site)), f"loads {address}"


def _to_nowhere(site: Path, pages: dict[Path, Document]) -> Iterator[tuple[str, str]]:
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or file.name == "404.html":
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                yield str(file.relative_to(site)), f"links to {link}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield str(file.relative_to(site)), f"links to {link}, and there is no such heading"
