"""Wake-ups: at most one a queue and 5 ms, never lost at the end of a burst, never in the way."""

import asyncio
import threading
import time
from datetime import timedelta

import psycopg
import pytest

from faultline import OutOfBounds
from faultline.client.wakeups import WINDOW_SECONDS, DelayedWakeups, WakeupSender


class Watch:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def test_the_first_hint_goes_at_once_and_the_next_waits_for_the_window():
    watch = Watch()
    hints = WakeupSender(watch)

    assert hints.ask("mail") == 0.0
    watch.now += WINDOW_SECONDS / 4
    assert hints.ask("mail") == pytest.approx(WINDOW_SECONDS * 3 / 4)
    assert hints.ask("mail") is None


def test_each_queue_has_its_own_window():
    hints = WakeupSender(Watch())

    assert (hints.ask("mail"), hints.ask("billing")) == (0.0, 0.0)


def test_a_job_after_the_late_hint_left_asks_for_its_own():
    watch = Watch()
    hints = WakeupSender(watch)
    hints.ask("mail")
    hints.ask("mail")

    watch.now += WINDOW_SECONDS
    hints.sending("mail")

    assert hints.ask("mail") == pytest.approx(WINDOW_SECONDS)


def test_a_job_that_brings_a_hint_takes_the_announced_one_along():
    watch = Watch()
    hints = WakeupSender(watch)
    hints.ask("mail")
    hints.ask("mail")

    watch.now += WINDOW_SECONDS
    assert hints.leads("mail")

    assert not hints.sending("mail")
    assert hints.ask("mail") == pytest.approx(WINDOW_SECONDS)
    assert hints.sending("mail")


def test_a_quiet_queue_is_forgotten():
    watch = Watch()
    hints = WakeupSender(watch)
    for n in range(10_000):
        hints.ask(f"queue{n}")
        watch.now += WINDOW_SECONDS

    assert len(hints._quiet_until) <= 1_000


def test_late_hints_are_sent_in_their_turn():
    sent: list[str] = []
    done = threading.Event()

    def send(queue):
        sent.append(queue)
        if len(sent) == 2:
            done.set()

    later = DelayedWakeups(send)
    later.add("second", 2.0)  # long enough that a busy machine adds the first in time
    later.add("first", 0.0)

    assert done.wait(30)
    assert sent == ["first", "second"]


@pytest.fixture
def heard(database):
    """What a listening worker hears."""
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("listen faultline")
        yield lambda seconds=0.3: [note.payload for note in conn.notifies(timeout=seconds)]


def test_an_enqueue_wakes_its_queue(shop, heard):
    shop.charge.enqueue(7)

    assert heard() == ["billing"]


def test_a_burst_is_told_at_its_start_and_after_its_end(shop, heard):
    shop.charge.enqueue(0)
    started = time.monotonic()
    for n in range(40):
        shop.charge.enqueue(n)
    windows = (time.monotonic() - started) / WINDOW_SECONDS

    # One a window, and one at each end; half as much again for a machine that is late with its timers.
    assert 2 <= len(heard()) <= windows * 1.5 + 5


def test_an_async_burst_is_told_at_its_start_and_after_its_end(shop, heard):
    async def main():
        async with shop.app:
            await asyncio.gather(*(shop.charge.aenqueue(n) for n in range(40)))

    asyncio.run(main())

    assert 2 <= len(heard()) <= 39


def test_many_jobs_are_told_once_a_queue(shop, heard):
    shop.app.enqueue_many([*[shop.charge.new(1)] * 2_500, shop.ping.new()])

    assert sorted(heard()) == ["billing", "default"]


def test_jobs_for_later_and_jobs_in_your_own_transaction_are_not_told(shop, heard, db):
    shop.charge.using(delay=timedelta(days=1)).enqueue(7)
    shop.charge.enqueue_in(db, 8)
    db.commit()

    assert heard() == []


def test_after_your_own_commit_you_may_wake_the_queue(shop, heard):
    shop.app.wake("billing")

    assert heard() == ["billing"]


def test_a_hint_that_fails_does_not_fail_the_enqueue(shop, db):
    db.execute("drop function faultline.wake")
    db.commit()

    for n in range(3):  # in one message with the job, prepared and not
        time.sleep(WINDOW_SECONDS)
        assert shop.charge.enqueue(n).info().state == "queued"


def test_a_job_that_is_refused_is_not_told_of_as_enqueued(shop, db):
    db.execute("alter table faultline.active add constraint a_test_refuses_all check (false) not valid")
    db.commit()

    for n in range(3):
        time.sleep(WINDOW_SECONDS)
        with pytest.raises(OutOfBounds, match="a test refuses all"):
            shop.charge.enqueue(n)
    db.execute("alter table faultline.active drop constraint a_test_refuses_all")
    db.commit()

    assert shop.charge.enqueue(7).info().state == "queued"
