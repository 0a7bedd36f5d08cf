"""Enqueues at the same time share a call and a commit, and nothing else: no error, no wait, no end."""

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from faultline import Faultline, KeyConflict
from faultline.client.batch_sizes import GATHERED_BYTES_MAX, GATHERED_JOBS_MAX
from faultline.client.gathering import async_line, thread_line
from faultline.errors import BadDocument, OutOfBounds
from faultline.store import calls
from tests.client.gathered import FORMS, MAIL, BusyApp
from tests.support import new_job, row_counts

NUL = '{"note": "\\u0000"}'
"""JSON that passes our checks nowhere but here: PostgreSQL cannot hold it."""


@pytest.fixture(params=FORMS)
def callers(request, database):
    callers = request.param(Faultline(database))
    callers.all_at_once([new_job(queue=MAIL)])  # the connection and the lane are there
    yield callers
    callers.close()


@pytest.fixture
def called(monkeypatch):
    """The names of the calls that stores make, and how many jobs each brings."""
    made = []
    enqueue, each = calls.enqueue_one, calls.enqueue_each

    def one(new):
        made.append(1)
        return enqueue(new)

    def many(jobs):
        made.append(len(jobs))
        return each(jobs)

    monkeypatch.setattr(calls, "enqueue_one", one)
    monkeypatch.setattr(calls, "enqueue_each", many)
    return made


@pytest.fixture
def patient(monkeypatch):
    """A line that waits for its leader, so that what gathers behind it is known."""
    for line in (async_line, thread_line):
        monkeypatch.setattr(line, "OVERTAKE_SECONDS", 30.0)


def transactions(database, ids):
    """The transaction that wrote each job."""
    with psycopg.connect(database) as conn:
        rows = conn.execute(
            "select id, xmin::text from faultline.active where id = any(%s)"
            " union all select id, xmin::text from faultline.later where id = any(%s)",
            [ids, ids],
        ).fetchall()
    return dict(rows)


def test_callers_at_the_same_time_share_few_commits(callers, database, called):
    answers = callers.all_at_once([new_job(queue=MAIL) for _ in range(60)])

    assert len(set(answers)) == 60
    assert set(transactions(database, answers)) == set(answers)
    assert sum(called) == 60
    assert len(called) < 30


def test_a_call_is_sent_at_once_when_nothing_is_under_way(callers, called):
    for _ in range(5):
        callers.all_at_once([new_job(queue=MAIL)])

    assert called == [1] * 5


def test_jobs_of_several_tasks_and_queues_and_with_options_share_a_call(callers, database, called):
    moment = datetime.now(UTC) + timedelta(days=2)
    options: list[dict[str, Any]] = [
        {"task": "a", "queue": MAIL, "max_attempts": 3},
        {"task": "b", "queue": MAIL, "trace": "00-" + "1" * 32 + "-" + "2" * 16 + "-01"},
        {"task": "c", "queue": MAIL, "trace": "00-" + "3" * 32 + "-" + "4" * 16 + "-01 v=1"},
        {"task": "d", "queue": "other"},
        {"task": "e", "queue": MAIL, "priority": -7},
        {
            "task": "f",
            "queue": MAIL,
            "lease_for": timedelta(seconds=2.5),
            "timeout": timedelta(days=3, seconds=7),
        },
        {"task": "g", "queue": MAIL, "retry": '{"kind":"constant","wait":5.0}'},
        {"task": "h", "queue": MAIL, "run_at": moment},
        {"task": "i", "queue": MAIL, "delay": timedelta(days=1, milliseconds=1)},
    ]
    wanted = [new_job(args=f'{{"n":{number}}}', **more) for number, more in enumerate(options)]
    callers.all_at_once(wanted)  # their lanes are there
    called.clear()

    ids = callers.all_at_once([new_job(queue=MAIL), *wanted])[1:]

    assert max(called) >= 2
    with psycopg.connect(database) as conn:
        rows = {
            row[0]: row[1:]
            for table in ("active", "later")
            for row in conn.execute(
                "select job.id, job.task, lane.queue, lane.priority, job.max_attempts, job.lease_for,"
                f" job.timeout, job.retry::text, job.trace, job.args from faultline.{table} as job"
                " join faultline.lanes as lane on lane.id = job.lane"
            )
        }
        put_off: dict[int, datetime] = dict(list(conn.execute("select id, run_at from faultline.later")))
    for job_id, job in zip(ids, wanted, strict=True):
        task, name, priority, budget, lease_for, timeout, retry, trace, args = rows[job_id]
        assert (task, name, priority, budget, lease_for, timeout, trace, json.loads(args)) == (
            job.task, job.queue, job.priority, job.max_attempts, job.lease_for, job.timeout, job.trace,
            json.loads(job.args),
        )  # fmt: skip
        assert (retry is None) == (job.retry is None)
    assert put_off[ids[7]] == moment
    assert set(put_off) >= {ids[7], ids[8]}


def test_a_job_that_postgresql_refuses_fails_alone(callers, database):
    good = [new_job(queue=MAIL) for _ in range(20)]
    bad = [
        new_job(queue=MAIL, args=NUL),
        new_job(queue=MAIL, retry='{"kind":"' + "x" * 9_000 + '"}'),
        new_job(queue=MAIL, lease_for=timedelta(days=400)),
        new_job(queue=MAIL, task="t" * 200),
        new_job(queue=MAIL, task="\ud800"),
    ]
    before = row_counts(database)["active"]

    answers = callers.all_at_once([*good[:10], *bad, *good[10:]])

    assert isinstance(answers[10], BadDocument)
    assert isinstance(answers[12], OutOfBounds)
    assert all(isinstance(answer, Exception) for answer in answers[10:15])
    assert len({answer for answer in answers if isinstance(answer, int)}) == 20
    assert row_counts(database)["active"] == before + 20


def test_a_key_that_names_another_request_fails_alone(callers, database):
    (first,) = callers.all_at_once([new_job(queue=MAIL, key="taken", args='{"a":1}')])
    asked = [new_job(queue=MAIL, key=f"k{number}") for number in range(20)]
    asked[7] = new_job(queue=MAIL, key="taken", args='{"a":2}')
    asked[11] = new_job(queue=MAIL, key="taken", args='{"a":1}')

    answers = callers.all_at_once(asked)

    assert isinstance(answers[7], KeyConflict)
    assert str(first) in str(answers[7])
    assert answers[11] == first
    made = [answer for answer in answers if isinstance(answer, int) and answer != first]
    assert len(set(made)) == 18
    assert len(set(transactions(database, made).values())) < 15, "a conflict sent its neighbours one by one"


def test_the_same_key_at_the_same_time_is_one_job(callers, database):
    before = row_counts(database)["active"]

    answers = callers.all_at_once([new_job(queue=MAIL, key="once") for _ in range(20)])

    assert len(set(answers)) == 1
    assert row_counts(database)["active"] == before + 1


@pytest.mark.usefixtures("patient")
def test_those_who_wait_go_in_one_call_of_at_most_250(database, called):
    async def main():
        async with BusyApp(database) as busy:
            called.clear()
            waiting = [busy.add(new_job(queue=MAIL)) for _ in range(GATHERED_JOBS_MAX + 10)]
            await asyncio.sleep(0)
            await busy.let_go()
            return await asyncio.gather(busy.first, *waiting)

    ids = asyncio.run(main())

    assert called == [GATHERED_JOBS_MAX, 10]
    written = transactions(database, ids)
    assert len({written[job_id] for job_id in ids[1 : GATHERED_JOBS_MAX + 1]}) == 1
    assert len(set(written.values())) == 3


@pytest.mark.usefixtures("patient")
def test_the_bytes_of_a_batch_are_bounded(database, called):
    size = 60_000
    args = '{"note":"' + "x" * size + '"}'

    async def main():
        async with BusyApp(database) as busy:
            called.clear()
            waiting = [busy.add(new_job(queue=MAIL, args=args)) for _ in range(40)]
            await asyncio.sleep(0)
            await busy.let_go()
            return await asyncio.gather(*waiting)

    assert len(set(asyncio.run(main()))) == 40
    assert sum(called) == 40
    assert max(called) == GATHERED_BYTES_MAX // len(args)


@pytest.mark.usefixtures("patient")
def test_a_long_job_goes_by_itself_and_keeps_no_other_waiting(database, called):
    async def main():
        async with BusyApp(database) as busy:
            called.clear()
            long = busy.add(new_job(queue=MAIL, args='{"note":"' + "x" * 1_000_000 + '"}'))
            await busy.until_waiting(2)
            await busy.let_go()
            return await asyncio.gather(busy.first, long)

    assert len(set(asyncio.run(main()))) == 2
    assert called == [1]


@pytest.mark.usefixtures("patient")
def test_a_caller_that_is_cancelled_before_its_job_is_sent_is_left_out(database, called):
    async def main():
        async with BusyApp(database) as busy:
            called.clear()
            before, gone, after = (busy.add(new_job(queue=MAIL, task=name)) for name in ("a", "gone", "b"))
            await asyncio.sleep(0)
            gone.cancel()
            await busy.let_go()
            await asyncio.gather(before, after)
            return gone.cancelled() or await asyncio.wait([gone]), [
                job.task for job in await busy.app.ajobs()
            ]

    cancelled, tasks = asyncio.run(main())

    assert cancelled
    assert "gone" not in tasks
    assert {"a", "b"} <= set(tasks)
    assert called == [2]


def test_a_caller_that_is_cancelled_after_its_job_was_sent_ends_alone_and_its_row_stays(
    database, monkeypatch
):
    monkeypatch.setattr(async_line, "OVERTAKE_SECONDS", 0.0)

    async def main():
        async with BusyApp(database) as busy:
            one, gone, other = (busy.add(new_job(queue=MAIL, task=name)) for name in ("a", "gone", "b"))
            await busy.until_waiting(2)  # the leader was overtaken: its job and the batch wait for the lock
            gone.cancel()
            await asyncio.wait([gone])
            assert not one.done()
            await busy.let_go()
            async with asyncio.timeout(20):
                await asyncio.gather(one, other)
            return gone.cancelled(), [job.task for job in await busy.app.ajobs()]

    cancelled, tasks = asyncio.run(main())

    assert cancelled
    assert {"a", "gone", "b"} <= set(tasks)


@pytest.mark.usefixtures("patient")
def test_a_leader_that_is_cancelled_leaves_those_behind_it(database):
    async def main():
        async with BusyApp(database) as busy:
            waiting = [busy.add(new_job(queue=MAIL)) for _ in range(5)]
            await asyncio.sleep(0)
            busy.first.cancel()
            await busy.let_go()
            await asyncio.wait([busy.first])
            return await asyncio.gather(*waiting), busy.first.cancelled()

    ids, cancelled = asyncio.run(main())

    assert len(set(ids)) == 5
    assert cancelled


def test_a_leader_that_waits_long_is_overtaken(database):
    """Another transaction creates its queue, and stays open."""
    with psycopg.connect(database) as theirs:
        app = Faultline(database)

        async def main():
            await app._sender.aenqueue(new_job(queue=MAIL))
            theirs.execute("select faultline.enqueue('t', queue => 'fresh')")
            first = asyncio.create_task(app._sender.aenqueue(new_job(queue="fresh")))
            await asyncio.sleep(0.01)
            async with asyncio.timeout(20):
                others = await asyncio.gather(*(app._sender.aenqueue(new_job(queue=MAIL)) for _ in range(5)))
                assert not first.done()
                theirs.commit()
                await first
            await app.aclose()
            return others

        assert len(set(asyncio.run(main()))) == 5


@pytest.mark.usefixtures("patient")
def test_closing_the_app_finishes_the_calls_that_wait(database):
    async def main():
        async with BusyApp(database) as busy:
            waiting = [busy.add(new_job(queue=MAIL, key=key)) for key in (None, None, "k")]
            await asyncio.sleep(0)
            closing = asyncio.create_task(busy.app.aclose())
            await asyncio.sleep(0.05)
            await busy.let_go()
            await closing
            return await asyncio.gather(busy.first, *waiting)

    assert len(set(asyncio.run(main()))) == 4


@pytest.mark.parametrize("close", ["close", "aclose"])
def test_closing_the_app_finishes_the_calls_of_other_threads(database, close):
    app = Faultline(database)
    sent = []

    def send():
        sent.append(app._sender.enqueue(new_job(queue=MAIL)))

    send()
    threads = [threading.Thread(target=send) for _ in range(30)]
    for thread in threads:
        thread.start()
    app.close() if close == "close" else asyncio.run(app.aclose())
    for thread in threads:
        thread.join(60)

    assert len(set(sent)) == 31
    app.close()
