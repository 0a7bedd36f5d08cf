"""Outcomes over gRPC: each arrives as it was sent, and protocol and codec name the same kinds."""

from datetime import timedelta
from typing import get_args

import pytest

from faultline.errors import InputError
from faultline.outcome import Cancel, Crashed, Dead, Done, Failed, Outcome, Released, Snooze, Unserved
from faultline.remote.outcome_messages import DELAY_MS_MAX, FIELDS, document_of, read, write
from faultline.rpc.v1 import worker_pb2 as rpc
from faultline.worker.settlement.outcome_codec import OutcomeKind, OutcomeRecord, to_record

SECOND = timedelta(seconds=1)

OUTCOMES: list[Outcome] = [
    Done(), Done('{"sent":true}'), Failed("ValueError: x"), Failed("ValueError: x", timedelta(0)),
    Failed("ValueError: x", SECOND), Crashed("it died", "SIGSEGV", None, alone=False, max_crashes=None),
    Crashed("it died", "SIGSEGV", SECOND, alone=True, max_crashes=7), Snooze(SECOND, "later"),
    Snooze(timedelta(0)), Cancel("withdrawn"), Dead("closed"), Dead("closed", "Traceback"),
    Released("stopping"), Released("busy", SECOND), Unserved(SECOND),
]  # fmt: skip


@pytest.mark.parametrize("outcome", OUTCOMES, ids=repr)
def test_an_outcome_comes_out_as_it_went_in(outcome):
    result = rpc.Result(job_id=7)

    write(result, outcome)
    again = rpc.Result.FromString(result.SerializeToString())

    assert read(again, to_record(outcome).kind) == outcome
    assert again.job_id == 7


def test_the_protocol_and_the_codec_name_the_same_kinds_and_fields():
    named = {name.removesuffix("_ms") for fields in FIELDS.values() for name, _ in fields}

    assert set(FIELDS) == set(get_args(OutcomeKind)) == {to_record(outcome).kind for outcome in OUTCOMES}
    assert named == {*OutcomeRecord.__struct_fields__} - {"kind"}


def test_only_a_kind_with_a_document_has_one():
    result = rpc.Result()
    write(result, Done("7"))

    assert document_of(result, "done") == b"7"
    assert document_of(rpc.Result(failed=rpc.Failed(error="x")), "failed") == b""


@pytest.mark.parametrize(
    ("result", "says"),
    [
        (rpc.Result(snoozed=rpc.Snoozed(delay_ms=DELAY_MS_MAX + 1)), "delay_ms is "),
        (rpc.Result(failed=rpc.Failed(delay_ms=2**64 - 1)), "delay_ms is "),
        (rpc.Result(crashed=rpc.Crashed(max_crashes=0)), "max_crashes"),
        (rpc.Result(done=rpc.Done(result=b"\xff")), "no UTF-8"),
    ],
    ids=["delay", "largest", "crashes", "document"],
)
def test_a_field_out_of_bounds_is_named(result, says):
    with pytest.raises(InputError, match=says):
        read(result, result.WhichOneof("outcome"))


def test_foreign_text_is_cut_and_made_safe():
    crashed = rpc.Crashed(error="x" * 10_000 + "\0", signature="y\0" * 1_000)

    outcome = read(rpc.Result(crashed=crashed), "crashed")

    assert isinstance(outcome, Crashed)
    assert (len(outcome.error), len(outcome.signature)) == (8_192, 500)
    assert "\0" not in outcome.signature
