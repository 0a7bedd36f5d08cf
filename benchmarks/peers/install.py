"""Install the peers under BENCH_HOME: an environment of Python and one of Node, neither the product's."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable

from benchmarks.peers import places

STAMP = places.HOME / "installed"


def install() -> None:
    """Make both environments, or find them as they should be.

    A peer that cannot be installed is named here, and stands as absent in the results: its adapter fails.
    """
    if STAMP.exists() and STAMP.read_text() == fingerprint():
        return
    places.HOME.mkdir(parents=True, exist_ok=True)
    complete = python_environment()
    complete = node_environment() and complete
    if complete:
        STAMP.write_text(fingerprint())


def fingerprint() -> str:
    """A digest of everything that decides what is installed, and of the checkout it is installed from."""
    digest = hashlib.sha256(str(places.ROOT).encode())
    for name in ("requirements.txt", "peers.txt", "package.json"):
        digest.update((places.HERE / name).read_bytes())
    digest.update((places.ROOT / "pyproject.toml").read_bytes())
    return digest.hexdigest()


def python_environment() -> bool:
    """The comparison's own tools and this checkout must install; a peer may fail alone."""
    install_tools()
    if not pip("--editable", str(places.ROOT)):
        sys.exit("peers: this checkout could not be installed; the lines above say why")
    wanted = (places.HERE / "peers.txt").read_text().split()
    return pip(*wanted) or one_by_one(pip, wanted)


def install_tools() -> None:
    """What measures and draws, without which there is nothing to do."""
    say(f"Python packages into {places.HOME / 'venv'}")
    if not places.PYTHON.exists():
        subprocess.run([sys.executable, "-m", "venv", str(places.HOME / "venv")], check=True)
    if not pip("-r", str(places.HERE / "requirements.txt")):
        sys.exit("peers: the comparison's own tools could not be installed; the lines above say why")


def node_environment() -> bool:
    """Node 22 comes from npm's own `node` package, since current peers refuse older ones."""
    if not shutil.which("npm"):
        say("there is no npm: the Node peers will be absent")
        return False
    say(f"Node packages into {places.NODE_DIR}")
    places.NODE_DIR.mkdir(exist_ok=True)
    shutil.copy(places.HERE / "package.json", places.NODE_DIR)
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
    return subprocess.run(command, cwd=places.NODE_DIR, check=False).returncode == 0


def pip(*words: str) -> bool:
    command = [str(places.PYTHON), "-m", "pip", "-qq", "--disable-pip-version-check", "install", *words]
    return subprocess.run(command, check=False).returncode == 0


def one_by_one(one: Callable[[str], bool], wanted: list[str]) -> bool:
    """One peer that is not to be had must not cost the others."""
    failed = [package for package in wanted if not one(package)]
    for package in failed:
        say(f"{package} could not be installed: its system will be absent")
    return not failed


def say(line: str) -> None:
    print(f"peers: {line}", file=sys.stderr, flush=True)
