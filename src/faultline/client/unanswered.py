"""Replies that were lost: what is known of the jobs, and what may be sent again."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from faultline.bounds import counted
from faultline.client.bulk import BulkEnqueue
from faultline.errors import OutcomeUnknown, ServerUnavailable


@contextmanager
def unknown_when_unanswered(matters: bool) -> Iterator[None]:
    """Raise OutcomeUnknown when the reply to a write was lost and no row could tell."""
    try:
        yield
    except ServerUnavailable as error:
        if matters and reply_was_lost(error):
            raise unknown() from error
        raise


@contextmanager
def bulk_unknown_when_unanswered(bulk: BulkEnqueue) -> Iterator[None]:
    """The same for jobs that are there whole, or not at all."""
    try:
        yield
    except ServerUnavailable as error:
        if bulk.all_sent and not bulk.repeatable and reply_was_lost(error):
            raise OutcomeUnknown(
                f"the connection broke during the commit of {counted(len(bulk.ids), 'job')}: it took place "
                "whole, or not at all. Look before you repeat it, or give each a key, which makes that safe"
            ) from error
        raise


def unknown() -> OutcomeUnknown:
    """The error of a job without a key whose reply was lost."""
    return OutcomeUnknown(
        "the connection broke before the database answered: the job may have been enqueued, or not. "
        "Look before you enqueue it again, or give it a key, which makes repeating safe"
    )


def reply_was_lost(error: BaseException) -> bool:
    """Whether the write may have been committed though the call failed."""
    # Class 53 (no room, disk full) is an answer: the statement was refused, and nothing was written.
    cause = error.__cause__
    return (
        isinstance(error, ServerUnavailable)
        and isinstance(cause, psycopg.Error)
        and not (cause.sqlstate or "").startswith("53")
    )
