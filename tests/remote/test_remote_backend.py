"""The backend that is a server: its messages, and what it makes of the answers."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from faultline.config import Settings
from faultline.errors import (
    CannotConnect,
    ConfigError,
    FaultlineError,
    InputError,
    LeaseLost,
    ServerUnavailable,
)
from faultline.lease import Lease
from faultline.outcome import Done, Failed
from faultline.remote import call_messages, settle_messages
from faultline.remote.remote_backend import RemoteBackend
from faultline.remote.server_address import ServerAddress
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.rpc.v1.problem_pb2 import Problem
from faultline.store.rows import ClaimedRow, SettleRefusal
from faultline.worker.backend import ClaimParams
from faultline.worker.claiming.unserved_tasks import LEFT_MAX

LEASES = [Lease(number, number + 10, uuid4(), 15.0, 0.0) for number in range(3)]


def settled(*rest: rpc.Unsettled, accepted: int = 0) -> rpc.Settled:
    return rpc.Settled(accepted=accepted, rest=rest)


def unsettled(index: int, why: rpc.Why, code: str = "") -> rpc.Unsettled:
    refusal = rpc.Refusal(job_id=index, token=index + 10, reason=rpc.REASON_TOKEN_MISMATCH, current_token=99)
    return rpc.Unsettled(index=index, why=why, refusal=refusal, problem=Problem(code=code))


@pytest.mark.parametrize(
    ("why", "code", "error"),
    [
        (rpc.WHY_REFUSED, "", LeaseLost),
        (rpc.WHY_BUSY, "", settle_messages.RemoteRowBusy),
        (rpc.WHY_INVALID, "bad_document", InputError),
        (rpc.WHY_UNSENT, "database_unavailable", CannotConnect),
        (rpc.WHY_UNKNOWN, "database_unavailable", ServerUnavailable),
        (rpc.WHY_UNKNOWN, "unforeseen", FaultlineError),
        (rpc.WHY_UNSPECIFIED, "", ServerUnavailable),
    ],
)
def test_a_single_settling_raises_what_the_database_would(why, code, error):
    with pytest.raises(error) as raised:
        settle_messages.check(settled(unsettled(0, why, code)))

    assert type(raised.value) is error


def test_of_a_batch_each_has_its_own_answer():
    items = settle_messages.many(LEASES, [Done()] * 3).results.items
    mixed = settled(unsettled(0, rpc.WHY_REFUSED), unsettled(1, rpc.WHY_UNKNOWN), accepted=1)

    assert settle_messages.answers(items, mixed) == [
        (0, 10, "refused", "token_mismatch", 99), (1, 11, "alone", "unknown", None),
    ]  # fmt: skip
    assert settle_messages.answers(items, settled(accepted=3)) == []


@pytest.mark.parametrize(
    ("why", "error"), [(rpc.WHY_UNSENT, CannotConnect), (rpc.WHY_UNKNOWN, ServerUnavailable)]
)
def test_trouble_of_a_whole_batch_is_the_servers_and_no_items(why, error):
    items = settle_messages.many(LEASES, [Done()] * 3).results.items

    with pytest.raises(error):
        settle_messages.answers(items, settled(*(unsettled(index, why) for index in range(3))))


def test_results_are_parcelled_by_the_servers_limits():
    whole = settle_messages.many(LEASES, [Done("x" * 3000)] * 3)

    by_count = settle_messages.parcels(whole, rpc.Limits(items_max=2))
    by_weight = settle_messages.parcels(whole, rpc.Limits(message_bytes_max=5000))
    assert [len(parcel.results.items) for parcel in by_count] == [2, 1]
    assert [len(parcel.results.items) for parcel in by_weight] == [1, 1, 1]
    assert list(settle_messages.parcels(whole, rpc.Limits())) == [whole]
    assert list(settle_messages.parcels(settle_messages.many([], []), rpc.Limits())) == []


def test_trouble_of_one_parcel_is_no_matter_of_the_others():
    whole = settle_messages.many(LEASES, [Done()] * 3)
    parcels = list(settle_messages.parcels(whole, rpc.Limits(items_max=1)))
    refused = [SettleRefusal(2, 12, "refused", "token_mismatch", 99)]

    told = settle_messages.together(parcels, [CannotConnect("away"), ServerUnavailable("cut"), refused])

    assert told == [(0, 10, "alone", "unsent", None), (1, 11, "alone", "unknown", None), *refused]
    assert settle_messages.together(parcels, [[], [], refused]) == refused
    assert settle_messages.together([], []) == []


def test_trouble_of_all_parcels_is_raised_and_the_one_that_leaves_most_open():
    """Else what may have been recorded would be sent again unasked, and met by the fence."""
    parcels = [rpc.FromWorker()] * 2

    with pytest.raises(ServerUnavailable):
        settle_messages.together(parcels, [CannotConnect("away"), ServerUnavailable("cut")])
    with pytest.raises(CannotConnect):
        settle_messages.together(parcels, [CannotConnect("away"), CannotConnect("away")])
    with pytest.raises(KeyError):
        settle_messages.together(parcels, [KeyError("a mistake of ours"), []])


def test_each_of_a_batch_names_its_own_lease_and_says_how_it_ended():
    """Copied from a form for each claim: the form of one must never be another's."""
    claim = uuid4()
    leases = [*LEASES, *(Lease(number, 20 + number // 5, claim, 15.0, 0.0) for number in range(3, 9))]
    results = [None, "1", *[None] * 6, '"x"']
    delays = [timedelta(seconds=number) for number in range(9)]

    failures = [Failed(error, delay) for error, delay in zip("abcdefghi", delays, strict=True)]
    done = settle_messages.many(leases, [Done(result) for result in results]).results.items
    failed = settle_messages.many(leases, failures).results.items

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
    asked = [call_messages.proof(lease) for lease in LEASES]

    with pytest.raises(ServerUnavailable):
        call_messages.beaten(asked, rpc.Beaten(answers=[rpc.PULSE_HELD]))
    with pytest.raises(CannotConnect):
        call_messages.beaten(asked, rpc.Beaten(trouble=rpc.Trouble()))
    unknown = call_messages.beaten(asked, rpc.Beaten(answers=[rpc.PULSE_UNSPECIFIED] * 3))
    assert {answer for _, _, answer in unknown} == {"busy"}


def test_a_claim_in_trouble_says_whether_it_may_have_been_granted():
    for unknown, error in ((True, ServerUnavailable), (False, CannotConnect)):
        with pytest.raises(error):
            call_messages.claimed(rpc.Assignments(trouble=rpc.Trouble(unknown=unknown)), timedelta(seconds=1))


def test_a_claimed_job_has_the_columns_of_a_claimed_row():
    """Read by place: a column that moves has to move here too."""
    job = rpc.Job(
        id=1, token=2, attempt=3, max_attempts=4, crashes=5, task="t", queue="q", args=b"{}", key="k",
        created_at_us=call_messages.EPOCH_2000_US + 6, lease_ms=7, timeout_ms=8, retry="r", lane=9, place=10,
        trace="w", pickup_us=11, priority=12, key_seed=b"s",
    )  # fmt: skip

    (row,) = call_messages.claimed(rpc.Assignments(jobs=[job]), timedelta(seconds=1))

    assert ClaimedRow._make(row) == ClaimedRow(
        id=1, token=2, attempt=3, max_attempts=4, crashes=5, task="t", queue="q", args="{}", key="k",
        created_at=6, lease_for=timedelta(milliseconds=7), timeout=timedelta(milliseconds=8), retry="r",
        lane=9, pos=10, trace="w", due_at=0, claimed_at=11, priority=12, key_seed=b"s",
    )  # fmt: skip


def test_tasks_are_excepted_only_as_far_as_the_server_takes_them():
    """One of an earlier version takes none, and knows no call that says whether others serve a queue."""
    claim = ClaimParams(uuid4(), ["default"], 5, except_tasks=["one", "two", "three"])
    plain = ClaimParams(uuid4(), ["default"], 5)

    every = call_messages.ask(claim, rpc.Limits(except_tasks_max=50))
    assert list(every.except_tasks) == ["one", "two", "three"]
    assert list(call_messages.ask(claim, rpc.Limits(except_tasks_max=2)).except_tasks) == ["one", "two"]
    assert not call_messages.ask(claim, rpc.Limits()).except_tasks
    assert not call_messages.ask(plain, rpc.Limits(except_tasks_max=50)).except_tasks


def others_serve(answer: Any, most: int) -> bool:
    """The answer of a backend whose session is this."""
    backend = RemoteBackend(ServerAddress.read("nowhere"), Settings())
    session: Any = SimpleNamespace(call=answer, limits=rpc.Limits(except_tasks_max=most))
    backend._session = session
    return asyncio.run(backend.others_serve("default"))


@pytest.mark.parametrize(("most", "others"), [(0, False), (LEFT_MAX - 1, False), (LEFT_MAX, True)])
def test_a_task_is_left_to_others_only_where_every_exception_is_taken(most, others):
    """Else its jobs are put off: given back at once, they would come again at once."""
    asked = []

    async def answer(method, request):
        asked.append(method)
        return rpc.OthersServeResponse(others=True)

    assert others_serve(answer, most) is others
    assert asked == ["OthersServe"] * others


def test_a_server_that_knows_no_such_call_is_an_earlier_one():
    async def answer(method, request):
        raise ConfigError("the server refused: Method not found!")

    assert others_serve(answer, LEFT_MAX) is False


def test_an_earlier_server_does_not_tell_the_newest_place():
    """Then claims begin where this worker has claimed, or at the floor."""

    async def answer(method, request):
        raise ConfigError("the server refused: Method not found!")

    backend = RemoteBackend(ServerAddress.read("nowhere"), Settings())
    session: Any = SimpleNamespace(call=answer)
    backend._session = session

    assert asyncio.run(backend.newest_place()) is None
