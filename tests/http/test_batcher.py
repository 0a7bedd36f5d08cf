"""Submits that arrive together share a commit, and nothing else: not a refusal, not a wait, not an answer."""

import asyncio
from collections import Counter
from uuid import uuid4

import psycopg
import pytest

from faultline.errors import BadDocument, BadName, KeyConflict, OutcomeUnknown, ServerUnavailable
from faultline.server.http.submit.batcher import Batcher
from faultline.server.problems import RequestRefused
from faultline.server.server_sender import sender_on
from faultline.store import calls
from faultline.store.connection_turns import taking
from faultline.store.pool import AsyncStore
from tests.support import LEASE, new_job, row_counts


@pytest.fixture
def gather(database):
    """Submit jobs at once; what each was answered, and how many calls of each kind it took."""

    async def submit(jobs, spoil=None):
        store = AsyncStore(database)
        counted: Counter[str] = Counter()
        carry = store.run

        async def run(call, hint=None):
            counted[call.name] += 1
            if spoil is not None:
                spoil(call)
            return await carry(call, hint)

        setattr(store, "run", run)  # noqa: B010
        batcher = Batcher(store, sender_on(store), 1000)
        answers = await asyncio.gather(*(batcher.add(job) for job in jobs), return_exceptions=True)
        await store.close()
        return answers, counted

    return lambda jobs, spoil=None: asyncio.run(submit(jobs, spoil))


def test_jobs_that_arrive_together_go_in_few_calls(gather, store, queue):
    answers, counted = gather([new_job(queue=queue) for _ in range(300)])

    assert len({job_id for job_id, is_new in answers if is_new}) == 300
    assert counted["enqueue_many"] <= 4
    assert store.run(calls.count_jobs(queues=[queue])) == 300


def test_one_bad_job_does_not_fail_the_others(gather, store, queue):
    """A job that passes the server's checks is refused by the database; then each job asks by itself."""
    good = [new_job(queue=queue) for _ in range(20)]
    bad = new_job(queue=queue, args='{"a": "\\u0000"}')
    worse = new_job(queue="no good")

    answers, _ = gather([*good[:10], bad, *good[10:], worse])

    assert isinstance(answers[10], BadDocument)
    assert isinstance(answers[-1], BadName)
    made = [answer for answer in answers if isinstance(answer, tuple)]
    assert len(made) == 20
    assert store.run(calls.count_jobs(queues=[queue])) == 20


def test_jobs_of_different_kinds_go_apart_and_all_get_there(gather, store, queue):
    jobs = [new_job(queue=queue, priority=number % 3, task=f"t{number % 2}") for number in range(30)]

    answers, _ = gather(jobs)

    kept = {job.id: (job.priority, job.task) for job in store.run(calls.find_jobs(queues=[queue]))}
    assert [kept[job_id] for job_id, _ in answers] == [(job.priority, job.task) for job in jobs]


def test_a_key_that_conflicts_fails_only_its_own_job(gather, queue):
    jobs = [new_job(queue=queue, key="k", args='{"a": 1}'), new_job(queue=queue, key="k", args='{"a": 1}')]
    answers, _ = gather([*jobs, new_job(queue=queue)])
    again, _ = gather([new_job(queue=queue, key="k", args='{"a": 2}'), new_job(queue=queue)])

    assert answers[0][0] == answers[1][0]
    assert Counter(is_new for _, is_new in answers) == {True: 2, False: 1}
    assert isinstance(again[0], KeyConflict)
    assert again[1][1] is True


def test_a_locked_key_does_not_hold_up_the_others(gather, database, queue):
    """Their transaction is open, so the owner of the key is unknown: only jobs of that key wait."""
    with psycopg.connect(database) as theirs:
        theirs.execute("select faultline.enqueue('t', queue => %s)", [queue])
        theirs.commit()
        theirs.execute("select faultline.enqueue('t', queue => %s, key => 'held')", [queue])

        async def race():
            store = AsyncStore(database)
            batcher = Batcher(store, sender_on(store), 1000)
            held = asyncio.create_task(batcher.add(new_job(task="t", queue=queue, key="held")))
            await asyncio.sleep(0.05)
            free = await asyncio.wait_for(batcher.add(new_job(queue=queue)), 10)
            assert not held.done()
            theirs.commit()
            same = await asyncio.wait_for(held, 10)
            await store.close()
            return free, same

        free, same = asyncio.run(race())

    assert free[1] is True
    assert same[1] is False


def test_a_locked_queue_holds_up_no_other(gather, database, queue):
    """A long transaction that makes a queue delays the submits to that queue, and only those."""
    with psycopg.connect(database) as theirs:
        theirs.execute("select faultline.enqueue('t', queue => %s)", [queue])

        async def race():
            store = AsyncStore(database)
            batcher = Batcher(store, sender_on(store), 1000)
            held = [asyncio.create_task(batcher.add(new_job(queue=queue))) for _ in range(20)]
            await asyncio.sleep(0.05)
            free = await asyncio.wait_for(batcher.add(new_job(queue=f"{queue}-other")), 10)
            assert not any(task.done() for task in held)
            theirs.commit()
            answers = await asyncio.wait_for(asyncio.gather(*held), 10)
            await store.close()
            return free, answers

        free, answers = asyncio.run(race())

    assert free[1] is True
    assert len({job_id for job_id, _ in answers}) == 20


def test_a_lost_reply_is_told_as_unknown_and_nothing_is_sent_twice(gather, database, queue):
    lost = ServerUnavailable("the connection broke")
    lost.__cause__ = psycopg.OperationalError("gone")

    def spoil(call):
        if call.name == "enqueue_many":
            raise lost

    before = row_counts(database)["active"]
    answers, counted = gather([new_job(queue=queue) for _ in range(5)], spoil)

    assert {type(answer) for answer in answers} == {OutcomeUnknown}
    assert counted["enqueue_many"] <= 2
    assert row_counts(database)["active"] == before


def test_keyed_jobs_that_cannot_be_sent_in_time_are_told_so(database):
    """An open transaction holds their keys: the submits behind it do not wait for minutes."""

    async def submit():
        store = AsyncStore(database)

        async def hang(call, hint=None):
            await asyncio.sleep(60)

        setattr(store, "run", hang)  # noqa: B010
        batcher = Batcher(store, sender_on(store), 1000, seconds_max=0.3)
        jobs = [new_job(key=f"held-{number}") for number in range(60)]
        began = asyncio.get_running_loop().time()
        answers = await asyncio.gather(*(batcher.add(job) for job in jobs), return_exceptions=True)
        return answers, asyncio.get_running_loop().time() - began

    answers, seconds = asyncio.run(submit())

    kinds = Counter(type(answer) for answer in answers)
    assert set(kinds) == {TimeoutError, RequestRefused}
    assert kinds[TimeoutError] < 20  # those that were sent: their outcome is unknown
    assert {answer.kind.code for answer in answers if isinstance(answer, RequestRefused)} == {"overloaded"}
    assert seconds < 3


@pytest.mark.parametrize("keys", [["one"] * 12, ["one", "two", "three", "four"] * 3], ids=["one", "four"])
def test_keys_that_are_held_leave_room_for_the_keyed_jobs_of_other_callers(database, keys):
    """A transaction that stays open holds them."""

    async def submit():
        store, held = AsyncStore(database), asyncio.Event()
        send = store.run

        async def run(call, hint=None):
            if "keys" in call.args and call.args["keys"].values[0] in keys:
                await held.wait()
            return await send(call, hint)

        setattr(store, "run", run)  # noqa: B010
        batcher = Batcher(store, sender_on(store), 1000)
        with taking(name="greedy"):
            waiting = [asyncio.create_task(batcher.add(new_job(key=key))) for key in keys]
        await asyncio.sleep(0.1)
        with taking(name="other"):
            async with asyncio.timeout(20):
                _, is_new = await batcher.add(new_job(key=f"mine-{len(set(keys))}"))
        held.set()
        await asyncio.gather(*waiting)
        await store.close()
        return is_new

    assert asyncio.run(submit())


def test_jobs_that_cannot_be_sent_in_time_are_told_so(database):
    """Each kind waits for a call of its own; there are only so many calls at once."""

    async def submit():
        store = AsyncStore(database)

        async def hang(call, hint=None):
            await asyncio.sleep(60)

        setattr(store, "run", hang)  # noqa: B010
        batcher = Batcher(store, sender_on(store), 1000, seconds_max=0.3)
        jobs = [new_job(queue=f"held-{number}") for number in range(120)]
        began = asyncio.get_running_loop().time()
        answers = await asyncio.gather(*(batcher.add(job) for job in jobs), return_exceptions=True)
        took = asyncio.get_running_loop().time() - began
        await asyncio.sleep(0.5)
        return answers, took, batcher._waiting

    answers, seconds, waiting = asyncio.run(submit())

    assert all(isinstance(answer, TimeoutError | RequestRefused) for answer in answers)
    assert {answer.kind.code for answer in answers if isinstance(answer, RequestRefused)} == {"overloaded"}
    assert seconds < 3
    assert waiting == 0


def test_jobs_of_several_traces_go_in_few_calls(gather, store, queue):
    """Each of them carries the trace of its own request."""
    gather([new_job(queue=queue)])
    traces = [f"00-{number + 1:032x}-{number + 1:016x}-01" for number in range(100)]

    answers, counted = gather([new_job(queue=queue, trace=trace) for trace in traces])

    assert sum(counted.values()) <= 4
    kept = {job.id: job for job in store.run(calls.claim([queue], 200, lease=LEASE, claim=uuid4()))}
    assert [kept[job_id].trace for job_id, _ in answers] == traces


def test_the_first_jobs_of_a_queue_of_several_traces_are_all_stored(gather, store, queue):
    answers, _ = gather([new_job(queue=queue, trace=f"00-{n + 1:032x}-{n + 1:016x}-01") for n in range(20)])

    assert len({job_id for job_id, is_new in answers if is_new}) == 20
    assert store.run(calls.count_jobs(queues=[queue])) == 20
