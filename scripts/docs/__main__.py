"""Build the site in `site/`: gather its pages, have MkDocs render them, check what was built.

Usage: python -m scripts.docs [FOLDER, if not site/], by the Python of `.venv-docs`, which
`make docs` makes. Needs no network.
"""

import os
import subprocess
import sys
from pathlib import Path

from scripts.docs.built_site import faults
from scripts.docs.diagram import with_diagrams
from scripts.docs.pages import gather, settings

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"


def main(site: Path) -> None:
    gather(BUILD / "docs")
    for file in (BUILD / "docs").rglob("*.md"):
        file.write_text(with_diagrams(file.read_text()))
    (BUILD / "mkdocs.yml").write_text(settings())
    render(site)
    if found := faults(site):
        sys.exit("faultline: the site is not in order:\n" + "\n".join(found))
    print(f"faultline: {site / 'index.html'} can be opened, and read without a server", file=sys.stderr)


def render(site: Path) -> None:
    """Have MkDocs make the site; any warning of its, such as a link to nowhere, is an error."""
    where = ["-f", str(BUILD / "mkdocs.yml"), "-d", str(site)]
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", *where]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if code:
        sys.exit(code)


if __name__ == "__main__":
    main(Path(sys.argv[1] if sys.argv[1:] else ROOT / "site").resolve())
