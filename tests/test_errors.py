"""Errors are facts: named, explained, and the same after a trip through pickle."""

import inspect
import pickle
from datetime import UTC, datetime

import pytest

from faultline import errors
from faultline.job import JobInfo, JobState

ALL = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__]
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def ended(state, error=None):
    return JobInfo(
        id=7, state=state, task="charge", queue="default", attempt=3, max_attempts=3, run_at=MOMENT,
        created_at=MOMENT, error=error,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ALL)
def test_every_error_is_a_faultline_error_and_stands_in_the_tree(kind):
    assert issubclass(kind, errors.FaultlineError)
    assert kind.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("kind", ALL)
def test_every_error_says_what_happened_and_what_to_do_next(kind):
    lines = (inspect.getdoc(kind) or "").splitlines()

    assert lines[0].endswith((".", ";")) or len(lines) > 1
    assert len([line for line in lines if line]) >= 2


def test_a_lost_lease_names_job_token_and_reason():
    lost = errors.LeaseLost(7, 3, 5, "token_mismatch")

    assert (lost.job_id, lost.token, lost.current_token, lost.reason) == (7, 3, 5, "token_mismatch")
    assert str(lost) == "job 7: the lease with token 3 is lost (token_mismatch: token 5 is newer)"


def test_a_lease_lost_to_a_local_stop_names_no_other_token():
    assert str(errors.LeaseLost(7, 3, None, "not_renewed")).endswith("(not_renewed)")


def test_a_lost_lease_survives_pickling():
    lost = pickle.loads(pickle.dumps(errors.LeaseLost(7, 3, 5, "token_mismatch")))

    assert (lost.job_id, lost.reason) == (7, "token_mismatch")


def test_a_dead_job_is_told_with_its_last_error():
    dead = errors.JobDead(ended(JobState.DEAD, "ValueError: no such order"))

    assert str(dead) == "job 7 (charge) is dead after attempt 3 of 3: ValueError: no such order"
    assert dead.info.id == 7


def test_a_cancelled_job_is_told_with_its_reason():
    assert str(errors.JobCancelled(ended(JobState.CANCELLED))) == "job 7 (charge) was cancelled"
    assert str(errors.JobCancelled(ended(JobState.CANCELLED, "withdrawn"))).endswith("cancelled: withdrawn")


def test_waiting_too_long_is_also_a_timeout_to_python():
    assert issubclass(errors.WaitTimeout, TimeoutError)
