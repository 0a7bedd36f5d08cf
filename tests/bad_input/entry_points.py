"""Three entry points for a job: the Python client, the store behind it, and plain SQL. Each refuses alone."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import psycopg
from psycopg.sql import SQL, Identifier, Placeholder

from faultline import Faultline, Task, errors
from faultline.store import calls
from faultline.store.pool import Store
from tests.support import new_job


@dataclass(frozen=True)
class EntryPoints:
    """What is asked for by `args` (JSON text) and options, named as in SQL."""

    store: Store
    db: psycopg.Connection[Any]
    app: Faultline
    _tasks: dict[str, Task[Any, Any]] = field(default_factory=dict)

    def by_store(self, **options: Any) -> int:
        return self.store.run(calls.enqueue(new_job(**options)))

    def by_sql(self, **options: Any) -> int:
        """`select faultline.enqueue(task => ..., ...)`, as any client in any language sends it."""
        given = {"task": "test_task", **options}
        named = [SQL("{} => {}").format(Identifier(name), Placeholder(name)) for name in given]
        row = self.db.execute(
            SQL("select faultline.enqueue({})").format(SQL(", ").join(named)), given
        ).fetchone()
        assert row is not None
        return int(row[0])

    def by_python(self, value: Any = None, *, task: str = "test_task", **options: Any) -> int:
        """A task of one argument, `value`, with options as `using` takes them."""

        def handler(value: Any) -> None: ...

        if task not in self._tasks:
            self._tasks[task] = self.app.task(name=task)(handler)
        return self._tasks[task].using(**_as_using(options)).enqueue(value).id

    def refusals(self, **options: Any) -> dict[str, Exception]:
        """What each entry point says to the same request; one that admits it is told as such."""
        asked: dict[str, Any] = {
            "store": lambda: self.by_store(**options),
            "sql": lambda: self.by_sql(**options),
            "python": lambda: self.by_python(_read(options.get("args")), **_without(options, "args")),
        }
        return {entry: _refusal(ask) for entry, ask in asked.items()}


class LetIn(Exception):
    """An entry point that should have refused did not."""


def _refusal(ask: Any) -> Exception:
    try:
        return LetIn(f"job {ask()}")
    except (errors.FaultlineError, psycopg.Error) as refusal:
        return refusal


def _read(args: str | None) -> Any:
    return None if args is None else msgspec.json.decode(args)


def _as_using(options: dict[str, Any]) -> dict[str, Any]:
    renamed = {"lease_for": "lease"}
    return {renamed.get(name, name): value for name, value in options.items()}


def _without(options: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != name}


def words(refusal: BaseException) -> str:
    """What a person is shown of an error."""
    diag = getattr(refusal, "diag", None)
    said = [
        getattr(diag, part, None)
        for part in ("message_primary", "message_detail", "message_hint", "constraint_name")
    ]
    return " ".join(filter(None, said)) if diag else str(refusal)
