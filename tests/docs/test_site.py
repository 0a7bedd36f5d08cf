"""The site: its navigation is whole, every link leads somewhere, nothing is loaded from another server."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from scripts import tools
from scripts.docs.blocks import ROOT
from scripts.docs.built_site import faults
from scripts.docs.links import rewritten
from scripts.docs.pages import gather, settings, site_pages

PYTHON = ROOT / ".venv-docs/bin/python"
HEADING = re.compile(r"^#+ (.+?)(?: +\{:? ?#([\w.-]+) ?\})?$", re.MULTILINE)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return site_pages()


def test_every_page_is_in_the_navigation_and_the_other_way_round(pages):
    listed = re.findall(r"- (?:[\w ]+: )?([\w/.-]+\.md)$", settings(), re.MULTILINE)

    assert len(listed) == len(set(listed))
    assert set(listed) == {path for path in pages if not path.startswith("source/")}


def test_every_link_of_every_page_leads_to_a_page_and_a_heading(pages, tmp_path):
    gather(tmp_path)
    for path, text in pages.items():
        for target, heading in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]*))?\)", without_code(text)):
            place = os.path.normpath(Path(path).parent / target) if target else path
            assert (tmp_path / place).exists(), f"{path} links to {target}"
            if heading and place in pages:
                assert heading in anchors(pages[place]), f"{path} links to {target}#{heading}"


def without_code(text: str) -> str:
    return re.sub(r"^ *(`{3,}).*?^ *\1$|`[^`\n]+`", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """What a page can be linked to by: given ids, headings as the site writes them, names."""
    headings = HEADING.findall(re.sub(r"^ *(`{3,}).*?^ *\1$", "", text, flags=re.DOTALL | re.MULTILINE))
    names = set(re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE))
    return names | {given or slug(title) for title, given in headings}


def slug(title: str) -> str:
    title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
    return re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")


def test_links_out_of_the_documents_lead_to_pages_of_the_site(tmp_path):
    guide = ROOT / "docs/guides/operate.md"
    text = "[a](../../README.md) [b](drain.md#x) `[c](../../LICENSE)` [d](../../examples/retries.py)"

    assert rewritten(text, guide, "guides/operate.md") == (
        "[a](../index.md) [b](drain.md#x) `[c](../../LICENSE)` [d](../source/examples/retries.py.md)"
    )


GOOD = (
    '<link rel="stylesheet" href="a.css"><h1 id="top">x</h1><a href="//e.org/">out</a><a href="#top">up</a>'
)
BAD = {
    '<script src="https://cdn.example.org/a.js"></script>': "loads https://cdn.example.org/a.js",
    '<link rel="preconnect" href="//fonts.example.org">': "loads //fonts.example.org",
    '<img src="http://example.org/a.png">': "loads http://example.org/a.png",
    '<pre class="mermaid"></pre>': "fetch a program",
    '<a href="gone.html">x</a>': "links to gone.html, which is not there",
    '<a href="#gone">x</a>': "there is no such heading",
}


@pytest.mark.parametrize("line", BAD)
def test_a_page_that_loads_from_elsewhere_or_leads_nowhere_is_refused(line, tmp_path):
    (tmp_path / "a.css").write_text("a { background: url(b.png) }")
    (tmp_path / "index.html").write_text(GOOD)
    assert faults(tmp_path) == []

    (tmp_path / "index.html").write_text(GOOD + line)

    (fault,) = faults(tmp_path)
    assert BAD[line] in fault


def test_a_style_sheet_that_loads_from_elsewhere_is_refused(tmp_path):
    (tmp_path / "a.css").write_text("@import 'https://fonts.example.org/a.css';")

    assert faults(tmp_path) == ["a.css: loads https://fonts.example.org/a.css"]


@pytest.mark.skipif(not PYTHON.exists(), reason="the site's tools are not there: `make docs` installs them")
def test_the_site_is_built_and_searched_from_the_disk(tmp_path):
    """In a browser without a network: the page that is opened finds what another page says."""
    built = subprocess.run(
        [PYTHON, "-m", "scripts.docs", str(tmp_path / "site")], cwd=ROOT, capture_output=True, text=True,
        timeout=110, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    browser = tools.find("chromium")
    if browser is None:
        pytest.skip(tools.why_not("chromium"))

    page = (tmp_path / "site/index.html").as_uri()
    words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom",
             "--virtual-time-budget=10000", "--host-resolver-rules=MAP * ~NOTFOUND",
             "--disable-background-networking", f"--user-data-dir={tmp_path}/browser"]  # fmt: skip
    shown = subprocess.run(
        [browser, *words, f"{page}?q=heartbeat"], capture_output=True, text=True, timeout=100, check=True
    )

    assert 'href="reference/sql/leases.html' in shown.stdout.replace(f"{tmp_path.as_uri()}/site/", "")
