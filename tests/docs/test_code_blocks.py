"""Every code block of the README and of docs/ is run, or stands below with the reason why it is not."""

import os
from pathlib import Path

import pytest

from scripts.docs.blocks import Block, blocks, documents
from tests import prefork

SAMPLES = {
    "docs/architecture.md": "trees of folders and the way of a job",
    "docs/drills.md": "verdicts and timelines as the drills print them; tests/drills holds their words",
    "docs/explorer.md": "what the explorer prints of a broken order; tests/explorer holds it",
    "docs/guides/high-availability.md": "several hosts, as used by tests/store/test_hosts.py",
    "docs/reference/protocol.md": "the order of the messages; tests/grpc plays it",
}
"""Documents with blocks of plain text: figures, or what commands print. Nothing in them can be run."""

NOT_RUN = {
    (
        "docs/lifecycle.md",
        "mermaid",
    ): "a diagram; tests/test_docs.py compares the table below it with the SQL",
    ("docs/guides/operate.md", "ini"): "environment files; their variables are looked up by tests/deploy",
    ("docs/guides/operate.md", "dockerfile"): "needs a container engine: `make image-check` builds the image",
    (
        "docs/decisions/0028-columns-of-active.md",
        "sql",
    ): "with the names of blocks, which sql_files.py spells out",
    ("CONTRIBUTING.md", "sql"): "the head of a function that is not there, to show its form",
}
"""Blocks of other kinds, by file and language."""

IMPORTED = ("asyncpg", "django", "fastapi", "pydantic", "sqlalchemy.ext.asyncio")
"""By one block or another."""

RUN = {"python", "sql", "sh", "console"}
ALL = [block for file in documents() for block in blocks(file)]


def of(language: str) -> list[Block]:
    return [block for block in ALL if block.language == language and (block.file, language) not in NOT_RUN]


def where(block: Block) -> str:
    return f"{block.file}:{block.line}"


def test_every_block_is_run_or_is_listed_with_a_reason() -> None:
    unknown = [
        f"{where(block)} ({block.language}): {block.first_line}"
        for block in ALL
        if block.language not in RUN
        and (block.file, block.language) not in NOT_RUN
        and not (block.language == "text" and block.file in SAMPLES)
    ]

    assert unknown == [], "run them, or list them in SAMPLES or NOT_RUN with the reason"


def test_the_lists_name_no_block_that_is_gone() -> None:
    there = {(block.file, block.language) for block in ALL}

    assert set(NOT_RUN) <= there
    assert {(file, "text") for file in SAMPLES} <= there


@pytest.mark.parametrize("block", of("python"), ids=where)
def test_python_runs_and_its_jobs_succeed(block: Block, database: str, tmp_path) -> None:
    file = tmp_path / "block.py"
    file.write_text(block.text)

    said = tmp_path / "said"
    with said.open("wb") as output, Path(os.devnull).open("rb") as nothing:
        process = prefork.start(
            "tests.docs.run_python:run_file", str(file), stdin=nothing.fileno(), stdout=output.fileno(),
            stderr=output.fileno(), environment={**os.environ, "FAULTLINE_DSN": database}, imports=IMPORTED,
        )  # fmt: skip
        try:
            code = process.wait(100)
        finally:
            process.kill()
            process.wait()

    assert code == 0, said.read_text()


@pytest.mark.parametrize("block", of("sql"), ids=where)
def test_sql_runs(block: Block, db) -> None:
    """As the owner, with the group roles there; roles belong to the whole server, so nothing is kept."""
    with db.transaction(force_rollback=True):
        db.execute("select faultline.make_roles()")
        db.execute(block.text)
