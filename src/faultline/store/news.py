"""What is said on the channel: a queue that may have work, or jobs that somebody cancelled."""

from collections.abc import Sequence
from typing import Final

CANCELLED: Final = "cancelled:"
"""No queue's name has a colon: who knows only queues passes over this."""

JOBS_MAX: Final = 300
"""Jobs in one piece of news: PostgreSQL takes 8,000 bytes, and an id has 19 digits at most."""


def of_cancelled(job_ids: Sequence[int]) -> str:
    """News of jobs that were cancelled.

    >>> of_cancelled([7, 8])
    'cancelled:7,8'
    """
    return CANCELLED + ",".join(map(str, job_ids[:JOBS_MAX]))


def cancelled_in(news: str) -> list[int]:
    """The jobs that news names as cancelled; none where it is of something else, or of nothing we know.

    >>> cancelled_in("cancelled:7,8"), cancelled_in("default"), cancelled_in("cancelled:7;8")
    ([7, 8], [], [])
    """
    if not news.startswith(CANCELLED):
        return []
    said = news[len(CANCELLED) :].split(",")
    # Whoever has a connection can say anything here.
    plain = all(one.isascii() and one.isdigit() and len(one) < 20 for one in said)
    return [int(one) for one in said] if plain else []
