"""Generate src/faultline/rpc from proto/, or say whether it is current.

Usage: python3 scripts/proto.py [--check]. The generator lives in an environment of its own, .venv-proto,
made from the hash-checked requirements/proto.lock: it is an old one on purpose, because what it generates
runs with every protobuf since 5.27, and a new one would ask every user for the newest.
"""

import filecmp
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
PACKAGE = ROOT / "src"
LOCK = ROOT / "requirements" / "proto.lock"
VENV = ROOT / ".venv-proto"
STAMP = VENV / "faultline-stamp"
KINDS = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py")


def main(check: bool) -> int:
    make_environment()
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        made = sorted(file.relative_to(folder) for kind in KINDS for file in Path(folder).rglob(kind))
        if check:
            return compare(Path(folder), made)
        for file in made:
            shutil.copyfile(Path(folder) / file, PACKAGE / file)
    return 0


def make_environment() -> None:
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if STAMP.exists() and STAMP.read_text() == digest:
        return
    shutil.rmtree(VENV, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(VENV)])
    pip = [str(VENV / "bin/python"), "-m", "pip", "-qq", "--disable-pip-version-check", "install"]
    run([*pip, "--require-hashes", "--only-binary=:all:", "-r", str(LOCK)])
    STAMP.write_text(digest)


def generate(folder: Path) -> None:
    files = sorted(str(file.relative_to(PROTO)) for file in PROTO.rglob("*.proto"))
    out = [f"--{kind}_out={folder}" for kind in ("python", "pyi", "grpc_python")]
    run([str(VENV / "bin/python"), "-m", "grpc_tools.protoc", f"-I{PROTO}", *out, *files])


def compare(folder: Path, made: list[Path]) -> int:
    there = sorted(
        file.relative_to(PACKAGE) for kind in KINDS for file in (PACKAGE / "faultline/rpc").rglob(kind)
    )
    wrong = [str(file) for file in made if not same(folder / file, PACKAGE / file)]
    wrong += [f"{file} (nothing makes it)" for file in there if file not in made]
    for file in wrong:
        print(f"faultline: src/{file} is not what proto/ makes; run `make proto`", file=sys.stderr)
    return 1 if wrong else 0


def same(new: Path, old: Path) -> bool:
    return old.exists() and filecmp.cmp(new, old, shallow=False)


def run(command: list[str]) -> None:
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if code:
        sys.exit(f"faultline: {command[0]} ended with {code}; the lines above say why")


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("usage: python3 scripts/proto.py [--check]")
    sys.exit(main(check=bool(sys.argv[1:])))
