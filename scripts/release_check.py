"""Build the package as a release would, install the wheel where nothing else is, and run the demo from it.

Usage: python scripts/release_check.py [FOLDER for the packages; a temporary one without it]. Run by the
Python of `.venv`, whose build tools are pinned. The wheel's dependencies come from requirements/demo.lock.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WANTED_IN_WHEEL = ("faultline/py.typed", "faultline/sql/functions/leases/claim.sql")
UNWANTED = ("tests/", "__pycache__", ".faultline/")


def main(folder: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    say(f"building {version}")
    wheel, source = build(folder)
    check_wheel(wheel)
    check_source(source)
    with tempfile.TemporaryDirectory(prefix="faultline-release-") as empty:
        python = install(wheel, Path(empty))
        check_version(python, version, Path(empty))
        say("running the demo from the wheel")
        run([str(python.with_name("faultline")), "demo"], cwd=Path(empty))
    say(f"{wheel.name} and {source.name} can be released")


def build(folder: Path) -> tuple[Path, Path]:
    """The wheel is built from the unpacked source archive, as an installer without wheels would do it."""
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(folder)], cwd=ROOT)
    (source,) = folder.glob("*.tar.gz")
    with tempfile.TemporaryDirectory(prefix="faultline-sdist-") as unpacked:
        with tarfile.open(source) as archive:
            archive.extractall(unpacked, filter="data")
        (root,) = Path(unpacked).iterdir()
        run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=root)
    (wheel,) = folder.glob("*.whl")
    return wheel, source


def check_wheel(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    missing = [name for name in WANTED_IN_WHEEL if name not in names]
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/faultline").rglob("*.sql")}
    missing += sorted(sources - set(names))
    surplus = [name for name in names if any(part in name for part in UNWANTED)]
    if missing or surplus:
        sys.exit(f"faultline: the wheel lacks {missing} and should not have {surplus}")


def check_source(source: Path) -> None:
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = [name for name in ("README.md", "CHANGELOG.md", "LICENSE", "SECURITY.md") if name not in names]
    if missing:
        sys.exit(f"faultline: the source archive lacks {missing}")


def install(wheel: Path, folder: Path) -> Path:
    say("installing the wheel into an empty environment")
    run([sys.executable, "-m", "venv", str(folder / "venv")], cwd=folder)
    python = folder / "venv/bin/python"
    pip = [str(python), "-m", "pip", "-qq", "--disable-pip-version-check", "install"]
    lock = str(ROOT / "requirements/demo.lock")
    run([*pip, "--require-hashes", "--only-binary=:all:", "-r", lock], cwd=folder)
    run([*pip, "--no-deps", str(wheel)], cwd=folder)
    return python


def check_version(python: Path, version: str, folder: Path) -> None:
    command = [str(python.with_name("faultline")), "--version"]
    said = subprocess.run(command, cwd=folder, env=environment(), check=True, capture_output=True, text=True)
    if version not in said.stdout:
        sys.exit(f"faultline: the wheel of {version} says {said.stdout.strip()!r}")


def run(command: list[str], cwd: Path) -> None:
    code = subprocess.run(command, cwd=cwd, env=environment(), check=False).returncode
    if code:
        sys.exit(f"faultline: {' '.join(command)} ended with code {code}")


def environment() -> dict[str, str]:
    """Without what would let the checkout shine through."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


def say(line: str) -> None:
    print(f"faultline: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="faultline-packages-") as packages:
            main(Path(packages))
