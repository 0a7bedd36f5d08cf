"""Blocks of columns that the SQL functions name together.

`job.kept_columns` in a function stands for `job.created_at, job.lane, ...`: every function is read with its
blocks spelled out. A column that jobs keep is named here once, and moves with them.
"""

import re
from typing import Final

KEPT: Final = (
    "created_at", "lane", "max_attempts", "task", "lease_for", "timeout", "retry", "args", "trace",
    "key_seed", "limit_id", "gate",
)  # fmt: skip

BLOCKS: Final = {
    # What a job keeps for life: in `active`, `later` and `dead` alike.
    "kept_columns": KEPT,
    # All that `active` and `later` share, besides the id.
    "job_columns": (
        *KEPT, "token", "attempt", "crashes", "crashes_alone", "key", "error", "unknown_since", "expires_at",
    ),
    # Columns of a new job whose values are parameters or variables of the same name.
    "new_columns": (
        "max_attempts", "task", "lease_for", "timeout", "retry", "trace", "key_seed", "expires_at",
    ),
}  # fmt: skip

_BLOCK: Final = re.compile(rf"\b(?:(\w+)\.)?({'|'.join(BLOCKS)})\b")


def with_columns(sql: str) -> str:
    """The same SQL with the columns of each block by name.

    >>> with_columns("select new_columns")
    'select max_attempts, task, lease_for, timeout, retry, trace, key_seed, expires_at'
    """
    return _BLOCK.sub(_columns, sql)


def columns(block: str, row: str | None = None, **instead: str) -> str:
    """The columns of a block, of a row if one is named; `instead` gives other expressions for some of them.

    >>> columns("new_columns", "job", retry="null")
    'job.max_attempts, job.task, job.lease_for, job.timeout, null, job.trace, job.key_seed, job.expires_at'
    """
    prefix = "" if row is None else f"{row}."
    return ", ".join(instead.get(name, prefix + name) for name in BLOCKS[block])


def _columns(found: re.Match[str]) -> str:
    row, block = found.groups()
    return columns(block, row)
