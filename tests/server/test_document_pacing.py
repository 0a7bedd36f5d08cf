"""Pacing: large documents of one key leave the event loop to the calls of all others."""

import asyncio
import json
import re
import time
from uuid import uuid4

import pytest

from faultline.args.document import check_document
from faultline.rpc.v1 import client_pb2, worker_pb2
from faultline.server.grpc import jobs_service, messages
from faultline.server.grpc.sessions import result_settler
from faultline.server.http.submit import submission
from faultline.server.throttling.document_pacing import LARGE_BYTES, SLICE_SECONDS, DocumentPacing
from faultline.store.connection_turns import taking
from tests.bad_input.costly import MIB, _filled
from tests.server.test_fair_shares import doors

__all__ = ["doors"]

LONG = 2 * SLICE_SECONDS
AT_ONCE = 8
SOME_BYTES = 20_000
"""Not much, and enough for thousands of numbers that are dear to read."""


class Checks:
    """Slow checks, and how many of them there were between two turns of the loop, at most."""

    def __init__(self):
        self.most = self.row = self.all = 0

    def __call__(self, *given, **more):
        if not self.row:
            asyncio.get_running_loop().call_soon(self._turned)
        self.row += 1
        self.all += 1
        self.most = max(self.most, self.row)
        time.sleep(LONG)

    def _turned(self):
        self.row = 0


def test_checks_of_many_calls_come_one_to_a_turn_of_the_loop():
    checks = Checks()

    async def main():
        pacing = DocumentPacing()
        rows = [pacing.all_of((checks() for _ in range(3)), 4 * MIB) for _ in range(AT_ONCE)]
        await asyncio.gather(*rows, *[pacing.one(checks, MIB) for _ in range(AT_ONCE)])

    asyncio.run(main())
    assert (checks.all, checks.most) == (4 * AT_ONCE, 1)


def test_small_documents_take_no_turn():
    async def main():
        pacing = DocumentPacing()
        async with pacing._turn():
            assert await pacing.one(lambda: 7, LARGE_BYTES) == 7
            assert await pacing.all_of(map(int, "12"), LARGE_BYTES) == [1, 2]

    asyncio.run(main())


def test_keys_take_turns_and_one_that_leaves_holds_none_up():
    order = []

    def check(name):
        order.append(name)
        time.sleep(LONG)

    async def row(pacing, name, times):
        with taking(name=name):
            await pacing.all_of((check(name) for _ in range(times)), MIB)

    async def main():
        pacing = DocumentPacing()
        greedy = [asyncio.create_task(row(pacing, "greedy", 4)) for _ in range(AT_ONCE)]
        await asyncio.sleep(0)
        other = asyncio.create_task(row(pacing, "other", 1))
        await asyncio.sleep(0)
        for one in greedy[3:]:
            one.cancel()
        await other
        assert order.index("other") <= 2
        await asyncio.gather(*greedy[:3])
        assert not pacing._is_taken

    asyncio.run(main())


def test_every_door_paces_its_large_documents(doors, monkeypatch):
    """Eight calls at once at each API, of several documents each: between two checks the loop turns."""
    checks = Checks()
    for module in (submission, messages, result_settler):
        monkeypatch.setattr(module, "check_document", checks)
    args = {"a": "x" * 7_000}
    many = json.dumps({"jobs": [{"task": "t", "queue": "q", "args": args}] * 3}).encode()
    one = json.dumps({"task": "t", "queue": "q", "args": {"a": "x" * SOME_BYTES}}).encode()
    text = json.dumps(args).encode()
    asked = client_pb2.NewJob(task="t", queue="q", args=text)
    large = client_pb2.NewJob(task="t", queue="q", args=json.dumps({"a": "x" * SOME_BYTES}).encode())
    results = [
        worker_pb2.Result(
            job_id=10**9 + number, token=1, claim=uuid4().bytes, done=worker_pb2.Done(result=text)
        )
        for number in range(3)
    ]

    async def test(place):
        key = await place.key("enqueue", "work")
        rpc = place.place(key)
        head = {"content-type": "application/json"}
        async with place.http(key) as http:
            ways = {
                "http many": lambda: http.post("/api/v1/jobs/batch", content=many, headers=head),
                "http one": lambda: http.post("/api/v1/jobs", content=one, headers=head),
                "grpc many": lambda: rpc.ask(
                    rpc.jobs.SubmitMany, client_pb2.SubmitManyRequest(jobs=[asked] * 3)
                ),
                "grpc one": lambda: rpc.ask(rpc.jobs.Submit, client_pb2.SubmitRequest(job=large)),
                "grpc settle": lambda: rpc.ask(
                    rpc.workers.Settle, worker_pb2.SettleRequest(results=worker_pb2.Results(items=results))
                ),
            }
            for name, way in ways.items():
                checks.all = checks.most = 0
                await asyncio.gather(*[way() for _ in range(AT_ONCE)])
                assert checks.all >= AT_ONCE, name
                assert checks.most == 1, name

    doors(test)


def test_jobs_without_args_are_paced_by_the_size_of_their_message(doors, monkeypatch):
    """Keys and traces are checked too: 9,999 jobs of them held the event loop for 0.8 s."""
    checks = Checks()

    def slow(*given):
        checks()
        return messages.new_job(*given)

    monkeypatch.setattr(jobs_service, "new_job", slow)
    asked = [client_pb2.NewJob(task="t", queue="q", key=f"{number}" + "k" * 250) for number in range(17)]

    async def test(place):
        rpc = place.place(await place.key("enqueue"))
        many = client_pb2.SubmitManyRequest(jobs=asked)
        assert many.ByteSize() > LARGE_BYTES
        await asyncio.gather(*[rpc.ask(rpc.jobs.SubmitMany, many) for _ in range(2)])
        assert checks.all == 2 * len(asked)
        assert checks.most == 1

    doors(test)


FAR = ["1e308", "1.7976931348623157e307"]


@pytest.mark.parametrize("number", FAR)
def test_a_number_far_from_one_costs_little_more_than_another(number):
    """In looks of the plain parser at the same text: 5 of them; read by the fast one it took 20 to 30."""
    text = _filled(number, 18_000).encode()

    def cost(what):
        began = time.process_time()
        for _ in range(5):
            what()
        return time.process_time() - began

    check_document(text, "args")
    ratios = [cost(lambda: check_document(text, "args")) / cost(lambda: json.loads(text)) for _ in range(5)]
    assert min(ratios) < 14, ratios


EXPONENTS = ["1e000", "0e0", "1.0e000"]


@pytest.mark.parametrize("number", EXPONENTS)
def test_a_number_with_an_exponent_costs_no_python_of_its_own(number):
    """In looks of one pattern at the same text: 2 to 3 of them; a loop over the numbers took 7 to 13."""
    text = _filled(number, MIB).encode()
    pattern = re.compile(rb"e(-?[0-9]+)")

    def cost(what):
        began = time.process_time()
        what()
        return time.process_time() - began

    ratios = [
        cost(lambda: check_document(text, "args")) / cost(lambda: pattern.findall(text)) for _ in range(5)
    ]
    assert min(ratios) < 6, ratios
