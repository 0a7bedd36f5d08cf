"""Run a Python block of the documents as it stands, then a worker for the jobs that it enqueued.

Called by `prefork` with the block in a file, and its database in FAULTLINE_DSN.
"""

import ast
import asyncio
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from importlib import import_module
from pathlib import Path
from typing import Any

from faultline import Faultline, JobState
from tests.docs import surroundings

OF_DJANGO = ("django", "TASKS", "@task", "transaction.atomic", ".using(\n    queue_name", "result.refresh()")
"""The signs of a block of Django's page."""


def run(file: Path) -> dict[str, Any]:
    """The names that a block leaves behind."""
    source = file.read_text()
    if 'run="process"' in source:  # a child process imports the module that its handler stands in
        file.write_text(f"from tests.docs.surroundings import *\n{source}")
        sys.path.insert(0, str(file.parent))
        return vars(import_module(file.stem))
    names = {**vars(surroundings), "__name__": "__main__"}
    if any(word in source for word in OF_DJANGO):
        from tests.docs import django_project  # an extra

        names |= django_project.names()
    elif "def charge(" in source:
        names["app"] = Faultline(surroundings.dsn)
    run_statements(source, names)
    return names


def run_statements(source: str, names: dict[str, Any]) -> None:
    """One that awaits runs in an event loop, the others outside of it, as in programs of each kind."""
    loop = asyncio.new_event_loop()
    for statement in ast.parse(source).body:
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        code = compile(ast.Module([statement], []), "block", "exec", flags=flags, dont_inherit=True)
        with leaving_when_idle():
            if inspect.iscoroutine(result := eval(code, names)):
                loop.run_until_complete(result)


@contextmanager
def leaving_when_idle() -> Iterator[None]:
    """Have a program that works until Ctrl-C end once its jobs are done; its exit code has to be 0."""
    forever = Faultline.run_worker
    Faultline.run_worker = partialmethod(forever, until_empty=True)  # type: ignore[assignment]
    try:
        yield
    except SystemExit as left:
        if left.code:
            raise
    finally:
        Faultline.run_worker = forever  # type: ignore[method-assign]


async def pass_through(lifespan: Any, web: Any = None) -> None:
    """Start and stop what a web server would have beside it."""
    async with lifespan(web):
        await asyncio.sleep(0.1)


def main(file: Path) -> None:
    names = run(file)
    if "web" in names:  # a web app, started and stopped
        asyncio.run(pass_through(names["web"].router.lifespan_context, names["web"]))
    elif "lifespan" in names:
        asyncio.run(pass_through(names["lifespan"]))
    app = names["app"]
    if not isinstance(app, Faultline):
        return
    code = app.run_worker(until_empty=True)
    failed = [f"{job.task}: {job.error}" for job in app.jobs() if job.error or job.state is JobState.DEAD]
    if code or failed:
        sys.exit(f"the worker ended with {code}; {failed}")


def run_file(file: str) -> None:
    main(Path(file))
