"""A message between a worker and its children arrives as it was sent, or not at all."""

from datetime import timedelta
from uuid import UUID

import msgspec
import pytest

from faultline.errors import LeaseLost
from faultline.lease import Lease
from faultline.outcome import Cancel, Crashed, Dead, Done, Failed, Released, Snooze, Unserved
from faultline.worker.processes.child_protocol import (
    LENGTH,
    MESSAGE_BYTES_MAX,
    AskTimeLeft,
    AttemptEnded,
    ChildReady,
    ended,
    ending_of,
    framed,
    frames_from_child,
)

LEASE = Lease(7, 3, UUID(int=1), 15.0, 0.0)


@pytest.mark.parametrize(
    "outcome",
    [
        Done(None),
        Done('{"sent":true}'),
        Failed("ValueError: x\n  in f", timedelta(microseconds=1)),
        Failed("ValueError"),
        Snooze(timedelta.max, "later"),
        Snooze(timedelta(0)),
        Unserved(timedelta(seconds=15)),
        Cancel("withdrawn"),
        Dead(),
        Dead("closed", "Traceback"),
        Released("stopping", timedelta(seconds=1)),
        Crashed("HandlerDied: x", "SIGSEGV", timedelta(seconds=1), alone=True, max_crashes=None),
        None,
    ],
)
def test_an_outcome_comes_out_as_it_went_in(outcome):
    (told,) = frames_from_child().feed(framed(ended(1, outcome)))

    assert isinstance(told, AttemptEnded)
    assert ending_of(told, LEASE) == outcome
    assert type(ending_of(told, LEASE)) is type(outcome)


def test_a_refusal_comes_out_with_its_facts():
    (told,) = frames_from_child().feed(framed(ended(1, LeaseLost(7, 3, 5, "token_mismatch"))))
    assert isinstance(told, AttemptEnded)

    lost = ending_of(told, LEASE)

    assert isinstance(lost, LeaseLost)
    assert (lost.job_id, lost.token, lost.current_token, lost.reason) == (7, 3, 5, "token_mismatch")


def test_messages_come_out_whole_however_they_arrive():
    data = framed(ChildReady({})) + framed(AskTimeLeft(1)) + framed(AskTimeLeft(2))
    frames = frames_from_child()

    heard = [message for at in range(len(data)) for message in frames.feed(data[at : at + 1])]

    assert heard == [ChildReady({}), AskTimeLeft(1), AskTimeLeft(2)] == list(frames_from_child().feed(data))


@pytest.mark.parametrize(
    "data",
    [
        LENGTH.pack(MESSAGE_BYTES_MAX + 1),
        LENGTH.pack(2) + b"{}",
        LENGTH.pack(4) + b"\x80\x04K.",  # a pickle is only bytes here
        LENGTH.pack(17) + b'{"type":"System"}',
    ],
)
def test_what_is_no_message_of_ours_is_refused(data):
    with pytest.raises(ValueError, match=r"message|Object|JSON|Invalid|malformed"):
        list(frames_from_child().feed(data))


def test_an_outcome_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="Invalid enum value 'won'"):
        msgspec.convert({"type": "AttemptEnded", "turn": 1, "outcome": {"kind": "won"}}, AttemptEnded)
