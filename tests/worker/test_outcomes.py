"""How an attempt ends: what a handler returns or raises becomes what the database holds."""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from faultline.job import Job, JobInfo
from faultline.outcome import Cancel, Dead, Snooze
from faultline.retry import Constant, Retry, bury, ignore
from faultline.store import calls
from faultline.store.pool import Store
from faultline.task import TaskSpec, spec_of
from tests.servers import Server
from tests.support import enqueue
from tests.worker.harness import LEASE, drain

HOUR = timedelta(hours=1)


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("even its text is broken")


class Own(BaseException):
    """Not an Exception, so that a careless `except` would miss it."""


def nothing() -> None: ...


async def a_value() -> dict[str, Any]:
    return {"paid": True, "at": datetime(2026, 1, 1, tzinfo=UTC)}


def snooze_returned() -> Snooze:
    return Snooze(HOUR, "not yet")


async def snooze_raised() -> None:
    raise Snooze(HOUR, "not yet")


def cancel_returned() -> Cancel:
    return Cancel("withdrawn")


async def cancel_raised() -> None:
    raise Cancel("withdrawn")


def dead_returned() -> Dead:
    return Dead("closed")


async def dead_raised() -> None:
    raise Dead("closed")


async def failing() -> None:
    raise ValueError("no such order")


def failing_in_thread() -> None:
    raise ValueError("no such order")


def rules_retry() -> None:
    raise ConnectionResetError


def rules_bury() -> None:
    raise KeyError("never")


def rules_ignore() -> None:
    raise FileNotFoundError


def patient(attempt: int, error: BaseException) -> timedelta | None:
    return HOUR * attempt if attempt < 5 else None


async def own_policy() -> None:
    raise OSError


def long_error() -> None:
    raise ValueError("x" * 50_000_000 + "tail")


def unreadable_error() -> None:
    raise Unreadable


def strange_error() -> None:
    raise ValueError("nul \0, surrogate \ud800")


async def not_serialisable() -> object:
    return object()


def too_large() -> str:
    return "x" * (1 << 20)


async def cyclic() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


async def exits() -> None:
    raise SystemExit(1)


def exits_in_thread() -> None:
    raise SystemExit(1)


async def own_base() -> None:
    raise Own


def ends_its_iterator() -> None:
    raise StopIteration


def nothing_left() -> int:
    return next(iter([]))


async def cancels_itself() -> None:
    task = asyncio.create_task(asyncio.sleep(10))
    await asyncio.sleep(0)
    task.cancel()
    await task


def strange_words() -> Dead:
    return Dead("nul \0, surrogate \ud800, long " + "x" * 100_000)


def strange_snooze() -> Snooze:
    return Snooze(HOUR, "nul \0")


def endless_snooze() -> Snooze:
    return Snooze(timedelta(days=400_000))


async def healthy(job: Job) -> int:
    return job.id


RULES = Retry(on={KeyError: bury, FileNotFoundError: ignore, OSError: Constant(HOUR * 2)})
HANDLERS: list[Callable[..., Any] | TaskSpec] = [
    nothing, a_value, snooze_returned, snooze_raised, cancel_returned, cancel_raised, dead_returned,
    dead_raised,
    spec_of(failing, retry=Constant(HOUR)), spec_of(failing_in_thread, retry=Constant(HOUR)),
    spec_of(rules_retry, retry=RULES), spec_of(rules_bury, retry=RULES), spec_of(rules_ignore, retry=RULES),
    spec_of(own_policy, retry=patient), long_error, unreadable_error, strange_error, not_serialisable,
    too_large, cyclic, exits, exits_in_thread, own_base, ends_its_iterator, cancels_itself, strange_words,
    spec_of(nothing_left, retry=Retry(on={StopIteration: bury})),
    strange_snooze, endless_snooze, healthy,
]  # fmt: skip


@dataclass
class Ended:
    info: JobInfo
    outcomes: list[str]


@pytest.fixture(scope="module")
def ended(server: Server, template: str) -> Iterator[dict[str, Ended]]:
    """One job of each task, and what became of it; one worker held them all at once."""
    name = f"test_{secrets.token_hex(6)}"
    server.create_database(name, template)
    store = Store(server.dsn(name))
    store.run(calls.configure(default_lease=LEASE))
    names = [handler.name if isinstance(handler, TaskSpec) else handler.__name__ for handler in HANDLERS]
    ids = {task: enqueue(store, task=task, max_attempts=2) for task in names}
    ids["with_own_policy"] = enqueue(store, task="failing", retry='{"kind":"constant","wait":10800}')
    ids["with_broken_policy"] = enqueue(store, task="failing", retry='{"kind":"astrology"}')
    ids["last_chance"] = enqueue(store, task="failing", max_attempts=1)

    code = drain(server.dsn(name), *HANDLERS)

    assert code == 0
    infos = {task: store.run(calls.get(job_id)) for task, job_id in ids.items()}
    yield {
        task: Ended(info, [entry.outcome for entry in store.run(calls.history(info.id))])
        for task, info in infos.items()
        if info is not None
    }
    store.close()
    server.drop_database(name)


def waits(info: JobInfo) -> timedelta:
    return info.run_at - datetime.now(UTC)


def test_a_handler_that_returns_nothing_succeeds_with_null(ended):
    assert ended["nothing"].info.state == "succeeded"
    assert ended["nothing"].info.result is None
    assert ended["nothing"].outcomes == ["succeeded"]


def test_a_result_is_encoded_and_kept(ended):
    assert ended["a_value"].info.result == {"paid": True, "at": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("how", ["snooze_returned", "snooze_raised"])
def test_a_snoozed_job_comes_back_later_with_its_attempt(ended, how):
    info = ended[how].info

    assert (info.state, info.attempt) == ("queued", 0)
    assert timedelta(minutes=55) < waits(info) <= HOUR
    assert ended[how].outcomes == ["snoozed"]


@pytest.mark.parametrize("how", ["cancel_returned", "cancel_raised"])
def test_a_job_whose_handler_cancels_it_ends_without_an_error_of_its_own(ended, how):
    assert ended[how].info.state == "cancelled"
    assert ended[how].outcomes == ["cancelled"]


@pytest.mark.parametrize("how", ["dead_returned", "dead_raised"])
def test_a_job_whose_handler_gives_up_is_dead_whatever_attempts_are_left(ended, how):
    assert ended[how].info.state == "dead"
    assert "closed" in ended[how].info.error


@pytest.mark.parametrize("how", ["failing", "failing_in_thread"])
def test_a_failed_attempt_is_tried_again_after_the_policys_delay(ended, how):
    info = ended[how].info

    assert (info.state, info.attempt) == ("queued", 1)
    assert info.error.startswith("ValueError: no such order")
    assert timedelta(minutes=55) < waits(info) <= HOUR
    assert ended[how].outcomes == ["failed"]


def test_the_last_failed_attempt_is_the_jobs_death(ended):
    assert ended["last_chance"].info.state == "dead"
    assert ended["last_chance"].outcomes == ["dead"]


def test_a_policy_stored_with_the_job_goes_before_the_tasks(ended):
    assert HOUR * 2 < waits(ended["with_own_policy"].info) <= HOUR * 3


def test_a_stored_policy_that_cannot_be_read_does_not_cost_the_retry(ended):
    assert timedelta(minutes=55) < waits(ended["with_broken_policy"].info) <= HOUR


def test_a_rule_for_a_class_of_errors_chooses_another_delay(ended):
    assert HOUR < waits(ended["rules_retry"].info) <= HOUR * 2


def test_a_rule_may_bury_a_class_of_errors(ended):
    assert ended["rules_bury"].info.state == "dead"
    assert "never" in ended["rules_bury"].info.error


def test_a_handler_in_a_thread_that_ends_its_iterator_failed_by_that_name(ended):
    """Python makes RuntimeError of a StopIteration that leaves a coroutine: ours, and not the handler."""
    error = ended["nothing_left"].info.error

    assert ended["nothing_left"].info.state == "dead"  # by the rule for StopIteration
    assert "StopIteration\n" in error
    assert "return next(iter([]))" in error
    assert "RuntimeError" not in error
    assert "runner.py" not in error


def test_a_rule_may_ignore_a_class_of_errors(ended):
    assert ended["rules_ignore"].info.state == "succeeded"


def test_a_policy_may_be_a_function_of_the_users(ended):
    assert timedelta(minutes=55) < waits(ended["own_policy"].info) <= HOUR


def test_i9_an_error_of_50_megabytes_is_kept_with_head_and_tail(ended):
    info = ended["long_error"].info

    assert info.state == "queued"
    assert info.error.startswith("ValueError: xxx")
    assert "tail" in info.error
    assert len(info.error.encode()) <= 8192


def test_i9_an_error_that_cannot_be_read_still_settles_the_attempt(ended):
    assert ended["unreadable_error"].outcomes == ["failed"]
    assert ended["unreadable_error"].info.error.startswith(
        "Unreadable: (its text could not be read: RuntimeError)"
    )


def test_i9_an_error_that_is_no_text_is_spelled_out(ended):
    assert ended["strange_error"].outcomes == ["failed"]
    assert r"nul \x00, surrogate \ud800" in ended["strange_error"].info.error


@pytest.mark.parametrize(
    ("how", "says"), [("not_serialisable", "object"), ("too_large", "1,048,576"), ("cyclic", "cyclic")]
)
def test_i10_a_result_that_cannot_be_kept_fails_the_attempt_by_name(ended, how, says):
    info = ended[how].info

    assert ended[how].outcomes == ["failed"]
    assert info.state == "queued"
    assert info.error.startswith("BadDocument")
    assert says in info.error
    assert how in info.error


@pytest.mark.parametrize(
    "how", ["exits", "exits_in_thread", "own_base", "ends_its_iterator", "cancels_itself"]
)
def test_whatever_a_handler_raises_fails_its_attempt_and_not_the_worker(ended, how):
    assert ended[how].outcomes == ["failed"]
    assert ended[how].info.state == "queued"


def test_a_reason_that_is_no_text_does_not_keep_the_job_from_its_end(ended):
    assert ended["strange_words"].info.state == "dead"
    assert ended["strange_snooze"].outcomes == ["snoozed"]


def test_a_snooze_beyond_its_bounds_fails_the_attempt_by_name(ended):
    assert ended["endless_snooze"].outcomes == ["failed"]
    assert "a delay is from 0 to 10 years" in ended["endless_snooze"].info.error


def test_batch_mates_of_all_these_run_as_ever(ended):
    assert ended["healthy"].info.result == ended["healthy"].info.id
