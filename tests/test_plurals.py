"""A message that counts speaks of one thing as one."""

import logging
import os
import traceback
from types import SimpleNamespace
from typing import Any

import pytest

from faultline.args import ArgsCodec
from faultline.client import unanswered
from faultline.errors import BadArguments, OutcomeUnknown, ServerUnavailable, _in_brief
from faultline.runtime import run_worker
from faultline.telemetry import frames


def test_arguments():
    def one(order_id: int) -> None: ...

    with pytest.raises(BadArguments, match="takes 1 argument by position, got 2"):
        ArgsCodec.of(one, "one").encode((1, 2), {})


def test_jobs_whose_commit_was_not_answered(monkeypatch):
    monkeypatch.setattr(unanswered, "reply_was_lost", lambda error: True)
    bulk: Any = SimpleNamespace(all_sent=True, repeatable=False, ids=[7])

    with (
        pytest.raises(OutcomeUnknown, match="during the commit of 1 job: "),
        unanswered.bulk_unknown_when_unanswered(bulk),
    ):
        raise ServerUnavailable("gone")

    bulk.ids = list(range(1000))
    with (
        pytest.raises(OutcomeUnknown, match="during the commit of 1,000 jobs: "),
        unanswered.bulk_unknown_when_unanswered(bulk),
    ):
        raise ServerUnavailable("gone")


def test_handlers_that_would_not_stop(monkeypatch, caplog):
    left: list[int] = []
    monkeypatch.setattr(os, "_exit", left.append)
    monkeypatch.setattr(logging, "shutdown", lambda: None)

    run_worker._leave_at_once(SimpleNamespace(stuck=1, exit_code=3))  # type: ignore[arg-type]
    run_worker._leave_at_once(SimpleNamespace(stuck=2, exit_code=3))  # type: ignore[arg-type]

    assert [record.getMessage().split(";")[0] for record in caplog.records] == [
        "1 handler would not stop", "2 handlers would not stop",
    ]  # fmt: skip
    assert left == [3, 3]


def test_what_is_left_out_of_an_error():
    assert "... 1 line left out;" in _in_brief("\n".join(map(str, range(25))))
    assert "... 2 lines left out;" in _in_brief("\n".join(map(str, range(26))))

    def dive(depth):
        if depth:
            dive(depth - 1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as raised:
        dive(5)
    chain = list(traceback.walk_tb(raised.tb))
    assert any("... 1 frame left out ..." in line for line in frames._shown(chain, len(chain) - 1))
