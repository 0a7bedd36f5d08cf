"""The messages on the channel: a queue that may have work, or the ids of cancelled jobs."""

from collections.abc import Sequence
from typing import Final

CANCELLED: Final = "cancelled:"
"""No queue name has a colon: a listener that knows only queues ignores this message."""

JOBS_MAX: Final = 300
"""Jobs in one message: PostgreSQL takes 8,000 bytes, and an id has 19 digits at most."""


def cancelled_message(job_ids: Sequence[int]) -> str:
    """The message for cancelled jobs.

    >>> cancelled_message([7, 8])
    'cancelled:7,8'
    """
    return CANCELLED + ",".join(map(str, job_ids[:JOBS_MAX]))


def cancelled_in(news: str) -> list[int]:
    """The jobs that a message names as cancelled; none if it is another or an unknown message.

    >>> cancelled_in("cancelled:7,8"), cancelled_in("default"), cancelled_in("cancelled:7;8")
    ([7, 8], [], [])
    """
    if not news.startswith(CANCELLED):
        return []
    said = news[len(CANCELLED) :].split(",")
    # Any session of the database can send any text on the channel.
    plain = all(one.isascii() and one.isdigit() and len(one) < 20 for one in said)
    return [int(one) for one in said] if plain else []
