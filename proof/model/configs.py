"""The configurations of Faultline.tla: what each says, and what TLC must find in it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from proof.model.tlc import HERE, HOLDS

FOLDER: Final = HERE / "configs"
LIVENESS: Final = "Drains"
_EXPECTS = re.compile(r"^\\\* expects: (\w+)$")


@dataclass(frozen=True, slots=True)
class Config:
    """One .cfg file. Its first line says what must be found: `holds`, or the name of what must fail."""

    name: str
    path: Path
    expects: str
    says: str
    liveness: str

    @property
    def kind(self) -> str:
        """Must hold, must fail because something was taken away, or must be possible."""
        if self.expects == HOLDS:
            return "model"
        return "sometimes" if self.expects.startswith("Never") else "mutant"


def read(path: Path) -> Config:
    """A configuration from its file; loud when its first line does not say what it expects."""
    lines = path.read_text().splitlines()
    first = _EXPECTS.match(lines[0])
    if first is None:
        raise ValueError(f"{path.name} does not begin with `\\* expects: NAME`")
    says = " ".join(line[3:] for line in lines[1:] if line.startswith("\\* "))
    properties = next((line.split()[1:] for line in lines if line.startswith("PROPERTIES")), [])
    return Config(path.stem, path, first.group(1), says, LIVENESS if LIVENESS in properties else "")


def every() -> list[Config]:
    """All of them: what must hold first, then what must fail, then what must be possible."""
    order = {"model": 0, "mutant": 1, "sometimes": 2}
    return sorted((read(path) for path in FOLDER.glob("*.cfg")), key=lambda one: (order[one.kind], one.name))
