"""What we ship to run Faultline elsewhere, as data: files, and every command line that stands in them."""

import configparser
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[2]
UNITS = sorted((ROOT / "deploy/systemd").glob("*.service"))
MANIFESTS = sorted(
    file for file in (ROOT / "deploy").glob("kubernetes*/*.yaml") if file.name != "kustomization.yaml"
)
GUIDE = ROOT / "docs/guides/operate.md"
OURS = "/opt/faultline/bin/faultline"


class Line(NamedTuple):
    """A command line of ours, and where it stands."""

    where: str
    words: list[str]


def compose() -> dict[str, Any]:
    """The compose file, read."""
    return read(ROOT / "compose.yaml")


def read(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(file.read_text())
    return found


def unit(file: Path) -> dict[str, dict[str, str]]:
    """A unit, section by section; of a setting that is given twice, the last."""
    parser = configparser.RawConfigParser(strict=False, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(file.read_text())
    return {name: dict(parser[name]) for name in parser.sections()}


def lines() -> Iterator[Line]:
    """Every `faultline ...` in what we ship."""
    yield from _of_the_image()
    yield from _of_compose()
    for file in MANIFESTS:
        for words in _commands_in(read(file)):
            yield Line(str(file.relative_to(ROOT)), words)
    for file in UNITS:
        command = unit(file)["Service"]["ExecStart"].replace(OURS, "faultline")
        yield Line(file.name, [_filled(word) for word in shlex.split(command) if word != "$FAULTLINE_FLAGS"])


def _filled(word: str) -> str:
    return word.replace("${FAULTLINE_APP}", "shop:app")


def _of_the_image() -> Iterator[Line]:
    for found in re.finditer(r"CMD (\[.*\])", (ROOT / "Dockerfile").read_text()):
        yield Line("Dockerfile", json.loads(found[1]))


def _of_compose() -> Iterator[Line]:
    for name, service in compose()["services"].items():
        command = service.get("command", [])
        if command[:1] == ["faultline"]:
            yield Line(f"compose.yaml {name}", command)
        for script in command:
            for found in re.findall(r"^ *(faultline .*?)(?: >.*)?$", script, re.MULTILINE):
                words = shlex.split(found.replace("$$1", "name").replace("$$2", "read"))
                yield Line(f"compose.yaml {name}", words)
        test = service.get("healthcheck", {}).get("test", [])
        if test[1:2] == ["faultline"]:
            yield Line(f"compose.yaml {name} healthcheck", test[1:])


def _commands_in(node: Any) -> Iterator[list[str]]:
    match node:
        case {"command": ["faultline", *_]}:
            yield node["command"]
    match node:
        case dict():
            for value in node.values():
                yield from _commands_in(value)
        case list():
            for value in node:
                yield from _commands_in(value)


def in_the_guide() -> list[Line]:
    """Every line of the guide's code blocks that begins with `faultline`."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    text = "\n".join(block for language, block in blocks if language == "sh").replace("\\\n", " ")
    found = [line.split(" #")[0].strip() for line in text.splitlines()]
    return [Line("operate.md", shlex.split(line)) for line in found if line.startswith("faultline ")]
