"""The wait queue: a wake-up lets one waiter look at a time, and no waiter is forgotten."""

import asyncio
import time
from contextlib import ExitStack

import grpc
import pytest

from faultline.rpc.v1 import worker_pb2
from faultline.server.grpc.sessions.wait_queue import Waiter, WaitQueue
from faultline.server.problems import RequestRefused


def _waiting(wait_queue, here, *lines):
    waiters = [Waiter(queues) for queues in lines]
    for waiter in waiters:
        here.enter_context(wait_queue.present(waiter))
    return waiters, [asyncio.create_task(wait_queue.wait(waiter, 5.0)) for waiter in waiters]


def test_a_ring_wakes_the_first_in_line_and_it_lets_the_next_look():
    async def main():
        wait_queue, here = WaitQueue(), ExitStack()
        (first, second, other), tasks = _waiting(wait_queue, here, ["mail"], ["mail", "billing"], ["billing"])
        await asyncio.sleep(0)

        wait_queue.wake("mail")
        await tasks[0]
        assert (first.woken, second.woken, other.woken) == (True, False, False)
        wait_queue.pass_on(first)
        await tasks[1]
        assert (second.woken, other.woken) == (True, False)
        wait_queue.wake("")
        await tasks[2]

    asyncio.run(main())


def _rung_in_turn(wait_queue, queue, waiters):
    """The places of those who are let look at a ring, when none of them finds anything."""
    turns: list[int] = []
    wait_queue.wake(queue)
    while new := [place for place, waiter in enumerate(waiters) if waiter.woken and place not in turns]:
        for place in new:
            wait_queue.pass_on_unused(waiters[place])
        turns += new
    return turns


def test_a_session_that_excepts_a_task_lets_the_others_claim_it():
    """Or a job would wait for the poll behind a worker that does not know its task."""

    async def main():
        wait_queue, here = WaitQueue(), ExitStack()
        excepted = [["mail.send"], ["mail.send"], ["mail.send", "mail.fetch"], [], ["mail.fetch"], []]
        waiters = [Waiter(["mail"], tasks) for tasks in excepted]
        for waiter in waiters:
            here.enter_context(wait_queue.present(waiter))
        tasks = [asyncio.create_task(wait_queue.wait(waiter, 5.0)) for waiter in waiters]
        await asyncio.sleep(0)

        # The second and third would find nothing either; the fourth takes everything, so there is nothing.
        assert _rung_in_turn(wait_queue, "mail", waiters) == [0, 3]
        for waiter in waiters:
            waiter.end()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_a_ring_that_all_except_ends_with_the_last():
    async def main():
        wait_queue, here = WaitQueue(), ExitStack()
        waiters = [Waiter(["mail"], [f"task{place}", "unknown"]) for place in range(4)]
        for waiter in waiters:
            here.enter_context(wait_queue.present(waiter))
        tasks = [asyncio.create_task(wait_queue.wait(waiter, 5.0)) for waiter in waiters]
        await asyncio.sleep(0)

        # What the first two both except is only "unknown", and the others except that too.
        assert _rung_in_turn(wait_queue, "mail", waiters) == [0, 1]
        for waiter in waiters:
            waiter.end()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_a_ring_while_one_looks_is_not_lost():
    async def main():
        wait_queue = WaitQueue()
        waiter = Waiter(["mail"])
        with wait_queue.present(waiter):
            before = wait_queue.heard(waiter)
            wait_queue.wake("mail")
            assert wait_queue.heard(waiter) != before

    asyncio.run(main())


def test_no_waiter_is_woken_for_another_queue_and_nothing_is_kept_of_it():
    async def main():
        wait_queue, here = WaitQueue(), ExitStack()
        (waiter,), (task,) = _waiting(wait_queue, here, ["mail"])
        await asyncio.sleep(0)
        for number in range(10_000):
            wait_queue.wake(f"queue-{number}")
        assert not waiter.woken
        assert len(wait_queue._wakeups) == 1
        waiter.end()
        await task
        assert not wait_queue._lines

    asyncio.run(main())


def test_one_that_waits_without_wake_ups_looks_by_itself():
    async def main():
        wait_queue = WaitQueue()
        wait_queue.notified(None)
        polling = asyncio.create_task(wait_queue.poll())
        waiter = Waiter(["mail"])
        with wait_queue.present(waiter):
            async with asyncio.timeout(60):
                await wait_queue.wait(waiter, 60.0)
        assert waiter.woken
        polling.cancel()

    asyncio.run(main())


def test_news_of_other_queues_cost_a_session_of_many_queues_little(served):
    """Each of hundreds of sessions hears of every queue: none may look through all of its own for it."""

    async def test(place):
        way = place.place()
        session = way.workers.Session(metadata=[("authorization", f"Bearer {place.key}")])
        queues = [f"q{number}" for number in range(1_000)]
        await session.write(
            worker_pb2.FromWorker(hello=worker_pb2.Hello(protocol=1, name="w", queues=queues, wakes=True))
        )
        await session.read()
        (ours,) = place.server.workers.sessions
        began = time.process_time()
        for _ in range(10_000):
            ours._heard("elsewhere")
        assert time.process_time() - began < 0.2
        session.cancel()

    served(test)


def test_the_queues_of_waiting_asks_are_bounded_for_each_key_and_for_all():
    """Asks that named 1,000 queues took 60 KB each: one key took a gigabyte."""
    wait_queue, here = WaitQueue(queues_max=5, queues_per_key=4), ExitStack()
    mail = ["mail", "billing"]
    with here:
        for _ in range(2):
            here.enter_context(wait_queue.present(Waiter(mail), "shop"))
        with pytest.raises(RequestRefused, match="more than 4 queues together"):
            here.enter_context(wait_queue.present(Waiter(["mail"]), "shop"))
        here.enter_context(wait_queue.present(Waiter(["mail"]), "other"))
        with pytest.raises(RequestRefused, match="Asks of all keys name 5 queues"):
            here.enter_context(wait_queue.present(Waiter(["mail"]), "third"))

    with wait_queue.present(Waiter(mail), "shop"):  # the share came back
        pass


def test_an_ask_past_its_keys_share_of_queues_is_refused_over_the_wire(served):
    async def test(place):
        place = place.place(await place.key_for("work"))
        ask = worker_pb2.Ask(id=1, room=1, queues=["a", "b", "c"], wait_ms=1_000)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await place.ask(place.workers.Lease, worker_pb2.LeaseRequest(ask=ask))
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "more than 2 queues together" in refused.value.details()

    served(test, asked_queues_per_key=2)
