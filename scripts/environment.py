"""Make `.venv` hold exactly what a lock file names, and this checkout in editable form.

Usage: python3 scripts/environment.py demo|dev|model|docs. It needs the standard library alone, is a no-op
when nothing changed, and may be run twice at the same moment: the second waits for the first. `docs` has an
environment of its own, `.venv-docs`: its tools must not decide what versions the tests run on.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / (".venv-docs" if sys.argv[1:] == ["docs"] else ".venv")
STAMP = VENV / "faultline-stamp.json"

# dev.lock holds all that demo.lock holds, in the same versions (`make lock` sees to it).
INCLUDED = {"demo": ("demo",), "dev": ("dev", "demo"), "model": ("model",), "docs": ("docs",)}

# Locks that only add a tool to what is there: they do not bring this checkout, or what it is built with.
TOOLS = ("model",)


def main(profile: str) -> None:
    with (ROOT / ".venv.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        stamp = read_stamp()
        if stamp.get(profile) == fingerprint(profile):
            return
        if not stamp:
            make_venv()
        install(profile)
        fresh = {name: fingerprint(name) for name in INCLUDED[profile]}
        STAMP.write_text(json.dumps({**stamp, **fresh, "root": str(ROOT)}))


def read_stamp() -> dict[str, str]:
    """What the environment was made from; empty when it is missing, half made, or was moved here."""
    try:
        stamp: dict[str, str] = json.loads(STAMP.read_text())
        subprocess.run([VENV / "bin/python", "-c", ""], check=True, capture_output=True)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {}
    return stamp if stamp.get("root") == str(ROOT) else {}


def fingerprint(profile: str) -> str:
    """A digest of everything that decides what is installed."""
    digest = hashlib.sha256()
    for source in (lock_file(profile), ROOT / "pyproject.toml"):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def lock_file(profile: str) -> Path:
    return ROOT / "requirements" / f"{profile}.lock"


def make_venv() -> None:
    say(f"making {VENV.name} with Python {sys.version.split()[0]} (once)")
    shutil.rmtree(VENV, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(VENV)])


def install(profile: str) -> None:
    say(f"installing requirements/{profile}.lock into {VENV.name}")
    pip = [str(VENV / "bin/python"), "-m", "pip", "-qq", "--disable-pip-version-check", "install"]
    run([*pip, "--require-hashes", "--only-binary=:all:", "-r", str(lock_file(profile))])
    if profile in TOOLS:
        return
    # The build tools came with the lock, so nothing unpinned is fetched to build with.
    run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)])


def run(command: list[str]) -> None:
    # A PYTHONPATH of the caller's could hide packages from pip, or lend it ones that are not in the lock.
    ours = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    code = subprocess.run(command, cwd=ROOT, env=ours, check=False).returncode
    if code:
        sys.exit(f"faultline: could not set up {VENV.name} (exit code {code}); the lines above say why")


def say(line: str) -> None:
    print(f"faultline: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in INCLUDED:
        sys.exit("usage: python3 scripts/environment.py demo|dev|model|docs")
    main(sys.argv[1])
