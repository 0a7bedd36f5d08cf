"""A line to a server: it knows every call a worker makes, and says what the database would say."""

import asyncio
import inspect
import re
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from faultline.config import WorkerConfig
from faultline.errors import (
    CannotConnect,
    ConfigError,
    FaultlineError,
    InputError,
    LeaseLost,
    ServerUnavailable,
)
from faultline.lease import Lease
from faultline.remote import outcomes, words
from faultline.remote.address import Address
from faultline.remote.exchange import Exchange
from faultline.remote.line import RemoteLine
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.rpc.v1.problem_pb2 import Problem
from faultline.store import calls
from faultline.worker import cancels, feeder, settle, settler, telling, worker
from faultline.worker.unfit import LEFT_MAX

LEASES = [Lease(number, number + 10, uuid4(), 15.0, 0.0) for number in range(3)]


def test_every_call_that_a_worker_makes_can_be_carried():
    """Or a worker would learn only at work that a new one was forgotten here."""
    used = {
        name
        for module in (cancels, feeder, settle, settler, telling, worker)
        for name in re.findall(r"\bcalls\.(\w+)", Path(module.__file__).read_text())
        if inspect.isfunction(getattr(calls, name))
    }
    sent = {re.findall(r'Call\(\s*"(\w+)"', inspect.getsource(getattr(calls, name)))[0] for name in used}

    assert len(sent) > 12
    assert sent == set(RemoteLine(Exchange(Address.read("nowhere")), WorkerConfig())._ways)


def settled(*rest: rpc.Unsettled, accepted: int = 0) -> rpc.Settled:
    return rpc.Settled(accepted=accepted, rest=rest)


def unsettled(index: int, why: rpc.Why, code: str = "") -> rpc.Unsettled:
    refusal = rpc.Refusal(job_id=index, token=index + 10, reason=rpc.REASON_TOKEN_MISMATCH, current_token=99)
    return rpc.Unsettled(index=index, why=why, refusal=refusal, problem=Problem(code=code))


@pytest.mark.parametrize(
    ("why", "code", "error"),
    [
        (rpc.WHY_REFUSED, "", LeaseLost),
        (rpc.WHY_BUSY, "", outcomes.RowBusy),
        (rpc.WHY_INVALID, "bad_document", InputError),
        (rpc.WHY_UNSENT, "database_unavailable", CannotConnect),
        (rpc.WHY_UNKNOWN, "database_unavailable", ServerUnavailable),
        (rpc.WHY_UNKNOWN, "unforeseen", FaultlineError),
        (rpc.WHY_UNSPECIFIED, "", ServerUnavailable),
    ],
)
def test_a_single_settling_raises_what_the_database_would(why, code, error):
    with pytest.raises(error) as raised:
        outcomes.answer(settled(unsettled(0, why, code)))

    assert type(raised.value) is error


def test_of_a_batch_each_has_its_own_answer():
    items = outcomes.many(calls.complete_many(LEASES, [None, None, None]).args).results.items
    mixed = settled(unsettled(0, rpc.WHY_REFUSED), unsettled(1, rpc.WHY_UNKNOWN), accepted=1)

    assert outcomes.answers(items, mixed) == [
        (0, 10, "refused", "token_mismatch", 99), (1, 11, "alone", "unknown", None),
    ]  # fmt: skip
    assert outcomes.answers(items, settled(accepted=3)) == []


@pytest.mark.parametrize(
    ("why", "error"), [(rpc.WHY_UNSENT, CannotConnect), (rpc.WHY_UNKNOWN, ServerUnavailable)]
)
def test_trouble_of_a_whole_batch_is_the_servers_and_no_items(why, error):
    items = outcomes.many(calls.complete_many(LEASES, [None, None, None]).args).results.items

    with pytest.raises(error):
        outcomes.answers(items, settled(*(unsettled(index, why) for index in range(3))))


def test_results_are_parcelled_by_the_servers_limits():
    whole = outcomes.many(calls.complete_many(LEASES, ["x" * 3000] * 3).args)

    by_count = outcomes.parcels(whole, rpc.Limits(items_max=2))
    by_weight = outcomes.parcels(whole, rpc.Limits(message_bytes_max=5000))
    assert [len(parcel.results.items) for parcel in by_count] == [2, 1]
    assert [len(parcel.results.items) for parcel in by_weight] == [1, 1, 1]
    assert list(outcomes.parcels(whole, rpc.Limits())) == [whole]
    assert list(outcomes.parcels(outcomes.many(calls.complete_many([], []).args), rpc.Limits())) == []


def test_trouble_of_one_parcel_is_no_matter_of_the_others():
    parcels = list(
        outcomes.parcels(outcomes.many(calls.complete_many(LEASES, [None] * 3).args), rpc.Limits(items_max=1))
    )
    refused = [(2, 12, "refused", "token_mismatch", 99)]

    told = outcomes.together(parcels, [CannotConnect("away"), ServerUnavailable("cut"), refused])

    assert told == [(0, 10, "alone", "unsent", None), (1, 11, "alone", "unknown", None), *refused]
    assert outcomes.together(parcels, [[], [], refused]) == refused
    assert outcomes.together([], []) == []


def test_trouble_of_all_parcels_is_raised_and_the_one_that_leaves_most_open():
    """Else what may have been recorded would be sent again unasked, and met by the fence."""
    parcels = [rpc.FromWorker()] * 2

    with pytest.raises(ServerUnavailable):
        outcomes.together(parcels, [CannotConnect("away"), ServerUnavailable("cut")])
    with pytest.raises(CannotConnect):
        outcomes.together(parcels, [CannotConnect("away"), CannotConnect("away")])
    with pytest.raises(KeyError):
        outcomes.together(parcels, [KeyError("a mistake of ours"), []])


def test_each_of_a_batch_names_its_own_lease_and_says_how_it_ended():
    """Copied from a form for each claim: the form of one must never be another's."""
    claim = uuid4()
    leases = [*LEASES, *(Lease(number, 20 + number // 5, claim, 15.0, 0.0) for number in range(3, 9))]
    results = [None, "1", *[None] * 6, '"x"']
    delays = [timedelta(seconds=number) for number in range(9)]

    done = outcomes.many(calls.complete_many(leases, results).args).results.items
    failed = outcomes.many(calls.fail_many(leases, list("abcdefghi"), delays).args).results.items

    for items in (done, failed):
        assert [(item.job_id, item.token, item.claim) for item in items] == [
            (lease.job_id, lease.token, lease.claim.bytes) for lease in leases
        ]
    assert [item.done.result.decode() or None for item in done] == results
    assert {item.WhichOneof("outcome") for item in done} == {"done"}
    assert [(item.failed.error, item.failed.delay_ms) for item in failed] == [
        (error, 1000 * number) for number, error in enumerate("abcdefghi")
    ]


def test_a_beat_that_is_answered_wrongly_renews_nothing():
    asked = words.proofs(calls.heartbeat(LEASES, timedelta(seconds=1)).args)

    with pytest.raises(ServerUnavailable):
        words.beaten(asked, rpc.Beaten(answers=[rpc.PULSE_HELD]))
    with pytest.raises(CannotConnect):
        words.beaten(asked, rpc.Beaten(trouble=rpc.Trouble()))
    unknown = words.beaten(asked, rpc.Beaten(answers=[rpc.PULSE_UNSPECIFIED] * 3))
    assert {answer for _, _, answer in unknown} == {"busy"}


def test_a_claim_in_trouble_says_whether_it_may_have_been_granted():
    for unknown, error in ((True, ServerUnavailable), (False, CannotConnect)):
        with pytest.raises(error):
            words.claimed(rpc.Assignments(trouble=rpc.Trouble(unknown=unknown)), timedelta(seconds=1))


def test_tasks_are_excepted_only_as_far_as_the_server_takes_them():
    """One of an earlier version takes none, and knows no call that says whether others serve a queue."""
    claim = calls.claim(
        ["default"], 5, lease=timedelta(seconds=15), claim=uuid4(), except_tasks=["one", "two", "three"]
    ).args
    plain = calls.claim(["default"], 5, lease=timedelta(seconds=15), claim=uuid4()).args

    assert list(words.ask(claim, rpc.Limits(except_tasks_max=50)).except_tasks) == ["one", "two", "three"]
    assert list(words.ask(claim, rpc.Limits(except_tasks_max=2)).except_tasks) == ["one", "two"]
    assert not words.ask(claim, rpc.Limits()).except_tasks
    assert not words.ask(plain, rpc.Limits(except_tasks_max=50)).except_tasks


@pytest.mark.parametrize(("most", "others"), [(0, False), (LEFT_MAX - 1, False), (LEFT_MAX, True)])
def test_a_task_is_left_to_others_only_where_every_exception_is_taken(most, others):
    """Else its jobs are put off: given back at once, they would come again at once."""
    asked = []

    async def answer(method, request):
        asked.append(method)
        return rpc.OthersServeResponse(others=True)

    exchange: Any = SimpleNamespace(call=answer, limits=rpc.Limits(except_tasks_max=most))
    line = RemoteLine(exchange, WorkerConfig())

    assert asyncio.run(line.run(calls.others_serve("default", 1))) is others
    assert asked == ["OthersServe"] * others


def test_a_server_that_knows_no_such_call_is_an_earlier_one():
    async def answer(method, request):
        raise ConfigError("the server refused: Method not found!")

    exchange: Any = SimpleNamespace(call=answer, limits=rpc.Limits(except_tasks_max=50))

    assert asyncio.run(RemoteLine(exchange, WorkerConfig()).run(calls.others_serve("default", 1))) is False
