"""Who waits for work, and whom a wake-up lets look: one at a time, and nobody is forgotten."""

import asyncio
import time
from contextlib import ExitStack

from faultline.remote.serving.bell import Bell, Waiter
from faultline.rpc.v1 import worker_pb2


def _waiting(bell, here, *lines):
    waiters = [Waiter(queues) for queues in lines]
    for waiter in waiters:
        here.enter_context(bell.present(waiter))
    return waiters, [asyncio.create_task(bell.wait(waiter, 5.0)) for waiter in waiters]


def test_a_ring_wakes_the_first_in_line_and_it_lets_the_next_look():
    async def main():
        bell, here = Bell(), ExitStack()
        (first, second, other), tasks = _waiting(bell, here, ["mail"], ["mail", "billing"], ["billing"])
        await asyncio.sleep(0)

        bell.ring("mail")
        await tasks[0]
        assert (first.rung, second.rung, other.rung) == (True, False, False)
        bell.pass_on(first)
        await tasks[1]
        assert (second.rung, other.rung) == (True, False)
        bell.ring("")
        await tasks[2]

    asyncio.run(main())


def _rung_in_turn(bell, queue, waiters):
    """The places of those who are let look at a ring, when none of them finds anything."""
    turns: list[int] = []
    bell.ring(queue)
    while new := [place for place, waiter in enumerate(waiters) if waiter.rung and place not in turns]:
        for place in new:
            bell.pass_on_excepted(waiters[place])
        turns += new
    return turns


def test_who_excepts_a_task_lets_those_look_who_take_it():
    """Or a job would wait for the poll behind a worker that does not know its task."""

    async def main():
        bell, here = Bell(), ExitStack()
        excepted = [["mail.send"], ["mail.send"], ["mail.send", "mail.fetch"], [], ["mail.fetch"], []]
        waiters = [Waiter(["mail"], tasks) for tasks in excepted]
        for waiter in waiters:
            here.enter_context(bell.present(waiter))
        tasks = [asyncio.create_task(bell.wait(waiter, 5.0)) for waiter in waiters]
        await asyncio.sleep(0)

        # The second and third would find nothing either; the fourth takes everything, so there is nothing.
        assert _rung_in_turn(bell, "mail", waiters) == [0, 3]
        for waiter in waiters:
            waiter.end()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_a_ring_that_all_except_ends_with_the_last():
    async def main():
        bell, here = Bell(), ExitStack()
        waiters = [Waiter(["mail"], [f"task{place}", "unknown"]) for place in range(4)]
        for waiter in waiters:
            here.enter_context(bell.present(waiter))
        tasks = [asyncio.create_task(bell.wait(waiter, 5.0)) for waiter in waiters]
        await asyncio.sleep(0)

        # What the first two both except is only "unknown", and the others except that too.
        assert _rung_in_turn(bell, "mail", waiters) == [0, 1]
        for waiter in waiters:
            waiter.end()
        await asyncio.gather(*tasks)

    asyncio.run(main())


def test_a_ring_while_one_looks_is_not_lost():
    async def main():
        bell = Bell()
        waiter = Waiter(["mail"])
        with bell.present(waiter):
            before = bell.heard(waiter)
            bell.ring("mail")
            assert bell.heard(waiter) != before

    asyncio.run(main())


def test_nobody_is_woken_for_another_queue_and_nothing_is_kept_of_it():
    async def main():
        bell, here = Bell(), ExitStack()
        (waiter,), (task,) = _waiting(bell, here, ["mail"])
        await asyncio.sleep(0)
        for number in range(10_000):
            bell.ring(f"queue-{number}")
        assert not waiter.rung
        assert len(bell._rings) == 1
        waiter.end()
        await task
        assert not bell._lines

    asyncio.run(main())


def test_one_that_waits_without_wake_ups_looks_by_itself():
    async def main():
        bell = Bell()
        bell.news(None)
        polling = asyncio.create_task(bell.poll())
        waiter = Waiter(["mail"])
        with bell.present(waiter):
            async with asyncio.timeout(60):
                await bell.wait(waiter, 60.0)
        assert waiter.rung
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
