"""A Call with each argument as text and a cast: no codec or adapter of the user's own can change it."""

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from faultline.store.call import Call
from faultline.store.driver.arrays import ArrayParam

TYPES: Final = {
    "args": "jsonb", "before": "bigint", "claim": "uuid", "delay": "interval", "error": "text",
    "expires_at": "timestamptz", "expires_in": "interval", "job_id": "bigint", "key": "text",
    "key_for": "interval", "key_rule": "text", "lease_for": "interval", "max_attempts": "smallint",
    "most": "int", "priority": "smallint", "queue": "text", "reason": "text", "result": "jsonb",
    "retry": "jsonb", "run_at": "timestamptz", "savepoint": "boolean", "task": "text", "timeout": "interval",
    "token": "bigint", "trace": "text",
}  # fmt: skip
"""The type of each argument of the functions that run in a user's transaction."""


def text_call(call: Call[Any], paramstyle: str) -> tuple[str, dict[str, Any]]:
    """The statement in a driver's style (`pyformat` or `numeric_dollar`), and its arguments in order.

    >>> from faultline.store.call import Call
    >>> text_call(Call("get_job", {"job_id": 7}, read=len), "pyformat")
    ('select * from faultline.get_job(job_id => %(job_id)s::text::bigint)', {'job_id': '7'})
    """
    names = tuple([(name, type(value) is ArrayParam) for name, value in call.args.items()])
    return _render(call.name, names, paramstyle), {name: _text(value) for name, value in call.args.items()}


@lru_cache(maxsize=256)
def _render(name: str, args: tuple[tuple[str, bool], ...], paramstyle: str) -> str:
    parts = []
    for number, (arg, is_array) in enumerate(args, start=1):
        mark = f"%({arg})s" if paramstyle == "pyformat" else f"${number}"
        parts.append(f"{arg} => {mark}::text[]" if is_array else f"{arg} => {mark}::text::{TYPES[arg]}")
    return f"select * from faultline.{name}({', '.join(parts)})"


def _text(value: Any) -> Any:
    match value:
        case None:
            return None
        case ArrayParam():
            return list(value.values)
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.isoformat()
        case timedelta():
            return f"{value.days} days {value.seconds} seconds {value.microseconds} microseconds"
        case _:
            return str(value)
