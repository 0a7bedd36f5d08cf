"""The running job, as its handler sees it."""

import threading
from datetime import UTC, datetime

import pytest

from faultline.errors import BadName, FaultlineError
from faultline.job import Job, JobState


def running(token=3, attempt=1, context=None, seed=bytes(8)):
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return Job(7, "charge", "billing", attempt, 10, 0, token, None, moment, context, seed)


def test_an_idempotency_key_is_the_same_in_every_attempt():
    first, second = running(token=3, attempt=1), running(token=911, attempt=2)

    assert first.idempotency_key("intent") == second.idempotency_key("intent")
    assert "911" not in second.idempotency_key("intent")


def test_jobs_of_the_same_id_and_another_seed_have_other_keys():
    first, second = running(seed=b"12345678"), running(seed=b"12345679")

    assert first.idempotency_key("intent") != second.idempotency_key("intent")


@pytest.mark.parametrize("seed", [None, b"", b"1234567"])
def test_a_job_without_its_seed_makes_no_key(seed):
    with pytest.raises(FaultlineError, match=r"job 7 came without its key_seed.*no key was made"):
        running(seed=seed).idempotency_key("intent")


def test_two_effects_of_a_job_have_two_keys():
    assert running().idempotency_key("intent") != running().idempotency_key("receipt")


@pytest.mark.parametrize("name", ["", "x" * 201, "line\nbreak", "\x1b[31m", "prix €", "nul\0"])
def test_an_idempotency_key_needs_a_plain_name(name):
    with pytest.raises(BadName, match="printable ASCII"):
        running().idempotency_key(name)


def test_a_loss_is_seen_by_a_thread_that_looks():
    job = running()

    job._lose()

    assert job.lost
    assert job.wait_lost(0)


def test_a_loss_wakes_a_thread_that_waits():
    job = running()
    heard = []
    waiter = threading.Thread(target=lambda: heard.append(job.wait_lost(30)))
    waiter.start()

    job._lose()
    waiter.join(60)

    assert heard == [True]


def test_waiting_for_a_loss_that_does_not_come_ends_by_its_time():
    assert running().wait_lost(0.001) is False


def test_a_transaction_outside_a_worker_is_refused_in_words():
    with pytest.raises(FaultlineError, match="needs the worker"):
        running().complete()


def test_a_transaction_is_begun_by_the_worker_with_the_result_and_the_isolation():
    asked = []

    class Context:
        def complete(self, job, result, isolation):
            asked.append((job.id, result, isolation))

    running(context=Context()).complete(result={"paid": True})

    assert asked == [(7, {"paid": True}, None)]


def test_a_job_shows_its_id_and_task():
    assert repr(running()) == "Job(id=7, task='charge', attempt=1, token=3)"


def test_three_states_are_ends():
    assert [state for state in JobState if state.ended] == ["succeeded", "dead", "cancelled"]
