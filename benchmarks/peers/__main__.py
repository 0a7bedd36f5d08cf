"""The comparison in one command: install, measure, and make the page.

python -m benchmarks.peers [options]       everything; --help lists the options
python -m benchmarks.peers page            only the page and the plots, from the JSON that is there
"""

import subprocess
import sys

from benchmarks.peers import options, page, places
from benchmarks.peers.install import install, install_tools


def main(words: list[str]) -> None:
    if words[:1] == ["page"]:
        make_page(options.read(words[1:]))
        return
    asked = options.read(words)
    install()
    # The measuring needs packages of the comparison's own environment.
    inside("benchmarks.peers.runner", *words)
    if asked.out.parent == places.RESULTS or asked.page:
        make_page(asked)


def make_page(asked: options.Options) -> None:
    """Write the page, and let the comparison's own environment draw the pictures."""
    folder = (asked.page or places.DOCS).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "benchmarks.md").write_text(page.render(*page.load(asked.out.parent)))
    if not places.PYTHON.exists():
        install_tools()
    inside("benchmarks.peers.plots", str(asked.out.parent), str(folder / "images"))
    print(f"peers: {folder / 'benchmarks.md'}")


def inside(module: str, *words: str) -> None:
    done = subprocess.run([str(places.PYTHON), "-m", module, *words], cwd=places.ROOT, check=False)
    if done.returncode:
        sys.exit(done.returncode)


if __name__ == "__main__":
    main(sys.argv[1:])
