"""Hypothesis in small: a few long histories, some values. `make properties` asks more, and the mutants."""

import pytest
from hypothesis.stateful import run_state_machine_as_test

from proof.properties.asking import chosen
from proof.properties.catalog import ASKED
from proof.properties.ground import opened
from proof.properties.machine import Machine

HISTORIES = 24
VALUES = 20


@pytest.fixture(scope="module")
def ground(shared):
    with opened(shared) as ours:
        yield ours


def test_long_mixed_histories_are_what_the_reference_says(ground):
    class Here(Machine):
        judge_every = 6

    Here.ground = ground
    run_state_machine_as_test(Here, settings=chosen(HISTORIES, derandomize=True, stateful_step_count=20))

    assert ground.counts["judged"] > 0
    assert ground.counts["claims"] > 0


@pytest.mark.parametrize("one", ASKED, ids=lambda one: one.name)
def test_for_any_value(ground, one):
    one.ask(ground, VALUES)
