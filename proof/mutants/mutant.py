"""A mutant: a small patch to shipped SQL or shipped Python, and the test that must turn red on it.

A promise whose test stays green without the mechanism behind it proves nothing.
"""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "faultline"

PROMISES = {f"G{number}" for number in range(1, 17)}
"""The guarantees of docs/promises.md, by the numbers that its table of mutants shows."""


@dataclass(frozen=True)
class Patch:
    """In a file of the package: a text that stands there once, and its replacement."""

    file: str
    old: str
    new: str

    def apply(self, package: Path) -> None:
        """Change the file; loud when it does not say `old` exactly once."""
        path = package / self.file
        text = path.read_text()
        found = text.count(self.old)
        if found != 1:
            raise LookupError(f"{self.file} says {self.old!r} {found} times, not once: mend the mutant")
        path.write_text(text.replace(self.old, self.new))


@dataclass(frozen=True)
class Mutant:
    """What is broken, which promise that breaks, and the test that must notice."""

    name: str
    promise: str
    test: str
    """A test as pytest names it, without its parameters: the first of them that fails is recorded."""
    patches: tuple[Patch, ...]
    red_by: tuple[str, ...] = ()
    """Errors of the driver that show another mechanism keeping the promise: a constraint, for example."""

    @property
    def files(self) -> str:
        """The names of the files it changes, as readers know them."""
        return ", ".join(dict.fromkeys(patch.file for patch in self.patches))

    @property
    def leaves_the_schema_alone(self) -> bool:
        """Whether a database that the whole package migrated is the one its own copy would make."""
        return not any(patch.file.startswith(("sql/", "store/")) for patch in self.patches)

    def apply(self, package: Path) -> None:
        """Break a copy of the package as this mutant says."""
        for patch in self.patches:
            patch.apply(package)


def sql(function: str, old: str, new: str) -> Patch:
    """A patch to one of the verbs."""
    (file,) = (PACKAGE / "sql/functions").glob(f"*/{function}.sql")
    return Patch(f"sql/functions/{file.parent.name}/{file.name}", old, new)


def worker(module: str, old: str, new: str) -> Patch:
    """A patch to a part of the worker."""
    return Patch(f"worker/{module}.py", old, new)
