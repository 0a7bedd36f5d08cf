"""The images that compose.yaml names: pulled where a registry can be reached, else built as stand-ins."""

import hashlib
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import yaml

from faultline.embedded.binaries import find_binaries
from proof.image.engine import Engine
from scripts import tools

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
OURS = "localhost/faultline:local"
PACKAGES = "ca-certificates,python3,python3-venv,python3-pip,python-is-python3"
NOT_TO_BE_HAD = "none: neither a registry nor a package has it"


def names() -> dict[str, str]:
    """The images of others by name, as compose.yaml has them: `{"postgres": "postgres:18"}`."""
    images: list[str] = yaml.safe_load((ROOT / "compose.yaml").read_text())["x-images"]
    found = {}
    for text in images:
        name, image = re.fullmatch(r"\$\{(\w+)_IMAGE:-(.+)\}", text).groups()  # type: ignore[union-attr]
        found[name.lower()] = image
    return found


def obtain(engine: Engine) -> dict[str, str]:
    """Have every image in the engine's storage; which each one is, in words."""
    wanted = names()
    told = {"python": _obtain(engine, wanted["python"], _bootstrap)}
    told["postgres"] = _obtain(engine, wanted["postgres"], _stand_in_for_postgres)
    told["prometheus"] = _obtain(engine, wanted["prometheus"], _stand_in_for_prometheus)
    told["grafana"] = _obtain(engine, wanted["grafana"], lambda engine, image: NOT_TO_BE_HAD)
    return told


def _obtain(engine: Engine, image: str, stand_in: object) -> str:
    mark = engine.folder / f"made-{re.sub('[^a-z0-9]+', '-', image)}-{_recipes()}"
    if mark.exists() and engine.has(full(image)):
        return mark.read_text()
    told = "the image itself" if engine.pull(full(image)) else stand_in(engine, image)  # type: ignore[operator]
    if told != NOT_TO_BE_HAD:
        mark.write_text(told)
    return str(told)


def _recipes() -> str:
    """A digest of all that stand-ins are made from."""
    files = sorted(file for file in HERE.rglob("*") if file.suffix != ".pyc" and file.is_file())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files if file.parent != HERE)).hexdigest()[
        :12
    ]


def full(image: str) -> str:
    return f"docker.io/{image}" if "/" in image else f"docker.io/library/{image}"


def _bootstrap(engine: Engine, image: str) -> str:
    """A base of Debian's own packages, of the release that the image's tag names."""
    release = image.rpartition("-")[2]
    with tempfile.TemporaryDirectory(dir=engine.folder) as folder:
        engine.run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", release, folder, seconds=1800)
        with subprocess.Popen(["tar", "-C", folder, "-c", "."], stdout=subprocess.PIPE) as packed:
            command = ["podman", "import", "--quiet", "-", full(image)]
            subprocess.run(
                command, stdin=packed.stdout, env=engine.environment, check=True, capture_output=True
            )
    return f"debootstrap's {release} with Debian's Python"


def _stand_in_for_postgres(engine: Engine, image: str) -> str:
    binaries = find_binaries()
    package = binaries.folder.parent.parent
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE / "postgres", folder, dirs_exist_ok=True)
        for part in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(part, Path(folder) / part.name, symlinks=True)
        engine.build(Path(folder), full(image), PYTHON=names()["python"])
    return f"the embedded PostgreSQL {binaries.version}"


def _stand_in_for_prometheus(engine: Engine, image: str) -> str:
    program = tools.find("prometheus")
    if program is None:
        return NOT_TO_BE_HAD
    unpacked = tools.place() / "root/usr/bin/prometheus"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE / "prometheus", folder, dirs_exist_ok=True)
        shutil.copy(unpacked if unpacked.exists() else program, Path(folder) / "prometheus")
        engine.build(Path(folder), full(image), PYTHON=names()["python"])
    version = engine.run("podman", "run", "--rm", "--network=none", full(image), "--version").split()[2]
    return f"Debian's Prometheus {version}"
