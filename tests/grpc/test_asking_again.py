"""Over gRPC, too: a client that gave up and asks again is told what is durable, and nothing earlier."""

import asyncio

import grpc
import pytest

from faultline.rpc.v1 import client_pb2
from tests.grpc.conftest import serving
from tests.promises.no_standby import a_cluster

JOB = client_pb2.NewJob(task="charge", args=b'{"order": 7}', key="order-7")


@pytest.fixture(scope="module")
def cluster():
    with a_cluster() as running:
        yield running


async def until_it_waits(cluster, answer):
    while not await asyncio.to_thread(cluster.waiting):
        assert not answer.done(), "answered without the standby"


@pytest.mark.parametrize("many", [False, True])
def test_a_submit_that_is_repeated_with_its_key_is_answered_once_a_standby_has_it(cluster, many):
    async def test():
        async with serving(cluster.dsn) as served:
            way = served.place()
            await way.submit()  # the queue is there: what is asked for twice writes nothing the second time
            await asyncio.to_thread(cluster.wait_until_the_key_is_noted)

            def submit(seconds=60.0):
                if many:
                    asked = way.ask(way.jobs.SubmitMany, client_pb2.SubmitManyRequest(jobs=[JOB]), seconds)
                else:
                    asked = way.ask(way.jobs.Submit, client_pb2.SubmitRequest(job=JOB), seconds)
                return asyncio.create_task(asked)

            with cluster.standby_away():
                with pytest.raises(grpc.aio.AioRpcError):
                    await submit(1.0)
                await asyncio.to_thread(cluster.cancel_waits)
                again = submit()
                await until_it_waits(cluster, again)
            await again

    asyncio.run(test())


def test_an_end_that_was_waited_for_is_told_once_a_standby_has_it(cluster):
    async def test():
        async with serving(cluster.dsn) as served:
            way = served.place()
            job = await way.submit()
            await way.ask(way.jobs.Cancel, client_pb2.CancelRequest(id=job))

            with cluster.standby_away():
                asked = way.ask(way.jobs.Wait, client_pb2.WaitRequest(id=job, wait_ms=1), 60)
                answer = asyncio.create_task(asked)
                await until_it_waits(cluster, answer)
                assert (await way.info(job)).state == "cancelled"
            assert (await answer).state == "cancelled"

    asyncio.run(test())
