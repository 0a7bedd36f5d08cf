"""What follows from a worker's end, decided from values alone."""

import pytest

from faultline.errors import CannotConnect, ConfigError, SchemaMissing, WorkersKeepDying
from faultline.supervisor.messages import ProcessFailure
from faultline.supervisor.restart_policy import (
    STARTS_MAX,
    GiveUp,
    GroupFinished,
    GroupState,
    ProcessEnd,
    RestartProcess,
    next_step,
)

BROKEN = ProcessFailure("ConfigError", "there is no module shop")
AWAY = ProcessFailure("CannotConnect", "no listener")


def group(stopping=False, until_empty=False, ever_ready=True, starts_failed=1):
    return GroupState(stopping, until_empty, ever_ready, starts_failed)


@pytest.mark.parametrize("code", [0, 1, 3, -9, -11])
def test_one_that_worked_is_replaced_however_it_ended(code):
    assert isinstance(next_step(ProcessEnd(code, True), group()), RestartProcess)


def test_a_named_error_at_the_very_first_start_is_the_groups():
    verdict = next_step(ProcessEnd(2, False, BROKEN), group(ever_ready=False))

    assert isinstance(verdict, GiveUp)
    assert repr(verdict.error) == "ConfigError('there is no module shop')"


def test_once_the_group_worked_a_start_may_fail_a_few_times():
    for failed in range(1, STARTS_MAX):
        assert isinstance(
            next_step(ProcessEnd(2, False, BROKEN), group(starts_failed=failed)), RestartProcess
        )

    verdict = next_step(ProcessEnd(2, False, BROKEN), group(starts_failed=STARTS_MAX))
    assert isinstance(verdict, GiveUp)
    assert isinstance(verdict.error, ConfigError)


def test_a_database_that_is_away_is_waited_for_however_long():
    assert isinstance(next_step(ProcessEnd(1, False, AWAY), group(starts_failed=1_000)), RestartProcess)


def test_ends_without_a_word_become_one():
    assert isinstance(next_step(ProcessEnd(-9, False), group(ever_ready=False)), RestartProcess)

    verdict = next_step(ProcessEnd(-9, False), group(ever_ready=False, starts_failed=STARTS_MAX))
    assert isinstance(verdict, GiveUp)
    assert isinstance(verdict.error, WorkersKeepDying)
    assert "SIGKILL" in str(verdict.error)


@pytest.mark.parametrize(
    ("code", "ready", "shown"),
    [(0, True, 0), (1, True, 1), (-15, False, 0), (130, False, 0), (-15, True, 143), (-9, True, 137)],
)
def test_while_stopping_every_end_is_the_last_and_its_code_counts(code, ready, shown):
    assert next_step(ProcessEnd(code, ready), group(stopping=True)) == GroupFinished(shown)


def test_a_queue_found_empty_ends_a_worker_and_a_crash_does_not():
    assert next_step(ProcessEnd(0, True), group(until_empty=True)) == GroupFinished(0)
    assert next_step(ProcessEnd(1, True), group(until_empty=True)) == GroupFinished(1)
    assert isinstance(next_step(ProcessEnd(-9, True), group(until_empty=True)), RestartProcess)
    assert isinstance(
        next_step(ProcessEnd(1, True, ProcessFailure("", "it broke")), group(until_empty=True)),
        RestartProcess,
    )


def test_a_failure_comes_back_as_the_error_it_was_where_that_can_be():
    assert isinstance(ProcessFailure("SchemaMissing", "x").error(), SchemaMissing)
    assert isinstance(AWAY.error(), CannotConnect)
    for kind in ("LeaseLost", "ZeroDivisionError", "LossReason", ""):
        assert str(ProcessFailure(kind, "words").error()) == "words"
