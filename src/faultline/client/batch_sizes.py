"""How many jobs go to the database in one call, by the way that they came."""

from typing import Final

BULK_JOBS_FIRST: Final = 250
"""Of `enqueue_many`: the first call is small, so that the server soon has work while the next are made."""

BULK_JOBS_MAX: Final = 1_000
"""Of `enqueue_many`, whose jobs share a transaction and one answer."""

GATHERED_JOBS_MAX: Final = 250
"""Of callers in one app: all of them wait for the answer of the whole call."""

GATHERED_BYTES_MAX: Final = 1_048_576
"""The args of one such call; a longer job goes by itself."""

SUBMITTED_JOBS_MAX: Final = 500
"""Of clients of the server, whose jobs in one call share all options."""
