"""Rows of a claim as their worker gets them: each job has its own facts, whatever it shares with others."""

import asyncio
from datetime import timedelta
from uuid import uuid4

import pytest

from faultline.remote.call_messages import EPOCH_2000_US
from faultline.rpc.v1 import worker_pb2
from faultline.server.grpc.messages import ClaimIds
from faultline.server.grpc.sessions.job_messages import granted, in_parts, nothing
from faultline.server.grpc.sessions.result_settler import read
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.pool import AsyncStore
from faultline.store.rows import ClaimedRow
from tests.support import new_job

LEASE, TIMEOUT = timedelta(seconds=15), timedelta(hours=1)


def row(id: int, token: int = 7, task: str = "send", queue: str = "mail", **facts) -> ClaimedRow:
    usual = ClaimedRow(
        id, token, 1, 20, 0, task, queue, args=f'{{"n":{id}}}', key=None, created_at=id * 10, lease_for=None,
        timeout=None, retry=None, lane=1, pos=id + 100,
    )  # fmt: skip
    return usual._replace(**facts)


def test_each_job_has_its_own_facts_and_those_it_shares():
    claim = uuid4().bytes
    rows = [
        row(1), row(2, token=9, key_seed=b"12345678"), row(3, key="", trace="00-a"),
        row(4, task="bill", queue="money", lane=2, priority=-3),
        row(5, attempt=3, crashes=2, retry='{"a":1}'), row(6, lease_for=timedelta(seconds=3)),
        row(7, timeout=timedelta(seconds=9)), row(8),
    ]  # fmt: skip

    jobs = granted(rows, claim, LEASE, TIMEOUT, 5).jobs

    for job, said in zip(jobs, rows, strict=True):
        own, hard_end = said.lease_for or LEASE, said.timeout or TIMEOUT
        assert job == worker_pb2.Job(
            id=said.id, token=said.token, claim=claim, task=said.task, queue=said.queue,
            args=said.args.encode(), attempt=said.attempt, max_attempts=20, crashes=said.crashes,
            lease_ms=min(own, hard_end) // timedelta(milliseconds=1),
            deadline_ms=hard_end // timedelta(milliseconds=1), created_at_us=said.id * 10 + EPOCH_2000_US,
            key=said.key, timeout_ms=9000 if said.timeout else None, retry=said.retry, lane=said.lane,
            place=said.pos, trace=said.trace, priority=said.priority,
            key_seed=said.key_seed,
        )  # fmt: skip


@pytest.mark.parametrize("bytes_max", [1, 400, 10_000])
def test_parts_hold_the_same_jobs_in_their_order_and_only_the_last_says_that_no_more_come(bytes_max):
    whole = granted(
        [row(id, args='"%s"' % ("x" * 100)) for id in range(20)], b"c" * 16, LEASE, TIMEOUT, 5
    ).answer
    whole.assignments.id = 3

    parts = in_parts(whole, bytes_max)

    assert [job.id for part in parts for job in part.assignments.jobs] == list(range(20))
    assert all(part.ByteSize() <= bytes_max or len(part.assignments.jobs) == 1 for part in parts)
    assert [part.assignments.more for part in parts] == [True] * (len(parts) - 1) + [False]
    assert {(part.assignments.id, part.assignments.waited_ms) for part in parts} == {(3, 5)}


def test_nothing_is_one_empty_part():
    assert [len(part.assignments.jobs) for part in in_parts(nothing().answer, 1000)] == [0]


def test_what_was_read_of_a_result_does_not_show_its_claim():
    """An item ends up in tracebacks and logs."""
    result = worker_pb2.Result(job_id=1, token=2, claim=b"0123456789abcdef", done=worker_pb2.Done())

    (item,) = read(worker_pb2.Results(items=[result]), 10)

    assert item.claim == ClaimIds()[b"0123456789abcdef"]
    assert "0123" not in repr(item)
    assert str(item.claim) not in repr(item)


@pytest.mark.parametrize("prepare", [True, False])
def test_a_moment_is_the_same_raw_and_read(database, prepare):
    """A server reads the moment a job was made as a number, with and without a pooler in between."""

    async def look() -> None:
        ours = AsyncStore(database, prepare=prepare)
        job_id = await ours.run(calls.enqueue(new_job()))
        claim = calls.claim(["default"], 1, lease=LEASE, claim=uuid4())
        (claimed,) = await ours.run(Call(claim.name, claim.args, read=list, raw_moments=True))
        info = await ours.run(calls.get(job_id))
        await ours.close()
        assert round(info.created_at.timestamp() * 1_000_000) == claimed[9] + EPOCH_2000_US

    asyncio.run(look())
