"""A copy of the package to break: the tree itself is never dirtied."""

import compileall
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from proof.mutants.mutant import PACKAGE, Mutant


@contextmanager
def sandboxes() -> Iterator[Path]:
    """A folder for all copies, with one that is whole in `whole/`."""
    with tempfile.TemporaryDirectory(prefix="faultline-mutants-") as name:
        folder = Path(name)
        shutil.copytree(PACKAGE, folder / "whole" / "faultline", ignore=shutil.ignore_patterns("__pycache__"))
        # Compiled once: a copy keeps the times of its files, so only what is patched is compiled again.
        compileall.compile_dir(folder / "whole", quiet=2)
        yield folder


@contextmanager
def broken_copy(folder: Path, number: int, mutant: Mutant) -> Iterator[Path]:
    """A folder for PYTHONPATH that holds the package as the mutant wants it."""
    copy = folder / f"mutant-{number}"
    # Links: only the files that are broken need to be files of their own.
    shutil.copytree(folder / "whole", copy, copy_function=os.link)
    try:
        for name in {patch.file for patch in mutant.patches}:
            (copy / "faultline" / name).unlink()
            shutil.copy(folder / "whole" / "faultline" / name, copy / "faultline" / name)
        mutant.apply(copy / "faultline")
        for patch in mutant.patches:
            if patch.file.endswith(".py"):  # a mutant that does not compile would be red for the wrong reason
                compile((copy / "faultline" / patch.file).read_text(), patch.file, "exec")
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)
