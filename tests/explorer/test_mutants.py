"""What the explorer would have found, it finds: as steps, and as a spec that isolationtester plays."""

import re
from pathlib import Path

import pytest

from faultline.embedded.binaries import find_binaries
from faultline.errors import NoPostgres
from proof.explorer.exploring import hunt
from proof.explorer.mutants import MUTANTS
from proof.explorer.replay import isolationtester, play
from proof.explorer.scenarios import SCENARIOS
from proof.explorer.spec import file_name, spec
from proof.explorer.stage import altered
from proof.explorer.telling import told

SPECS = Path(__file__).parents[2] / "proof/specs"
MUTANT = MUTANTS["the fence is a plain SELECT"]
SCENARIO = SCENARIOS[MUTANT.scenario]


@pytest.fixture
def found(staged, stage):
    """The first order that breaks what the mutant must break, and the functions as they were then."""
    with altered(staged, MUTANT.edits, SCENARIO.stops) as functions:
        *_, tally = hunt(stage, SCENARIO, MUTANT.breaks)
    return tally.first_broken, functions


def test_a_zombie_behind_a_plain_select_is_found_and_told_step_by_step(found):
    order, _ = found
    steps = list(told(order))

    assert (
        "NoZombie",
        "A committed a row for job 1 with token 1, after that lease had ended",
    ) in order.broken
    assert any("A  fences" in step for step in steps)
    assert any("W  reaps" in step for step in steps)


def test_the_order_found_is_a_spec_that_isolationtester_plays_to_the_same_end(found, staged, tmp_path):
    try:
        program = isolationtester(find_binaries().folder)
    except NoPostgres as none:
        pytest.skip(str(none))
    order, functions = found
    file = tmp_path / "found.spec"
    file.write_text(spec(SCENARIO, order, functions=functions))

    printed = play(program, staged, file)

    assert "NoZombie |A committed a row for job 1 with token 1, after that lease had ended" in printed


def test_every_mutant_is_a_change_of_the_functions_as_they_are_shipped(staged):
    for mutant in MUTANTS.values():
        with altered(staged, mutant.edits, SCENARIOS[mutant.scenario].stops):
            pass


def test_every_stop_is_a_place_in_the_functions_as_they_are_shipped(staged):
    for scenario in SCENARIOS.values():
        with altered(staged, (), scenario.stops):
            pass


@pytest.mark.parametrize("name", MUTANTS)
def test_every_mutant_has_its_order_among_the_published_specs(name):
    text = (SPECS / f"{file_name(name)}.spec").read_text()
    printed = (SPECS / "expected" / f"{file_name(name)}.out").read_text()

    assert text.startswith(f"# {name}\n")
    assert MUTANTS[name].breaks in text
    assert re.search(rf"^{MUTANTS[name].breaks} *\||<waiting \.\.\.>|^ERROR: ", printed, re.MULTILINE)
