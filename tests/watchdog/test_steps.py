"""A clock that was set is told by the watchdog that notices it; its own pauses are not taken for that."""

from datetime import UTC, datetime, timedelta

import pytest

from faultline.metrics.event_counter import EventCounter
from faultline.store.rows import Round
from faultline.telemetry import listen
from faultline.watchdog.clock_steps import Steps

START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def told():
    heard = []
    stop = listen(lambda name, facts: heard.append((name, facts)))
    yield heard
    stop()


def at(seconds, *, last=None, mine=True, stepped=None, eras=(1, 1)):
    """A round, so many seconds after the start by the database's clock."""
    last_at = None if last is None else START + timedelta(seconds=last)
    back = None if stepped is None else timedelta(seconds=stepped)
    return Round(mine, START + timedelta(seconds=seconds), last_at, back, *eras)


def test_a_clock_that_goes_on_is_nothing_to_tell(told):
    steps = Steps()
    for second in range(10):
        steps.look(at(second, last=second - 1), 500 + second, 500.1 + second)

    assert told == []


def test_a_clock_that_was_set_forward_is_told(told):
    steps = Steps()
    steps.look(at(0), 500.0, 500.1)
    steps.look(at(3601, last=0), 501.0, 501.1)
    steps.look(at(3602, last=3601), 502.0, 502.1)

    assert told == [("clock_stepped", {"seconds": pytest.approx(3600, abs=0.2)})]


def test_one_that_was_set_back_is_told(told):
    Steps().look(at(0, last=7200, stepped=-7200), 500.0, 500.1)

    assert told == [("clock_stepped", {"seconds": -7200.0})]


def test_a_call_that_the_database_held_up_is_no_step(told):
    """It was frozen for a minute: its clock went on, and so did ours before we heard of it."""
    steps = Steps()
    steps.look(at(0), 500.0, 500.1)
    steps.look(at(61, last=0), 501.0, 561.2)
    steps.look(at(62, last=61), 562.0, 562.1)

    assert told == []


def test_our_own_standing_still_is_no_step(told):
    """Paused with our machine, whose clock did not go on; the others made their rounds."""
    steps = Steps()
    steps.look(at(0), 500.0, 500.1)
    steps.look(at(3600, last=3599), 501.0, 501.1)

    assert told == []


def test_a_step_between_the_round_of_another_and_ours_is_told(told):
    """By us, who make the first round after it; by the other, which does not, it is not."""
    ours, other = Steps(), Steps()
    ours.look(at(0, mine=False), 500.0, 500.1)
    other.look(at(1, last=0), 501.0, 501.1)
    ours.look(at(3602, last=1), 502.0, 502.1)
    other.look(at(3602.5, mine=False), 502.5, 502.6)
    other.look(at(3603.5, last=3602), 503.5, 503.6)

    assert [name for name, _ in told] == ["clock_stepped"]


def test_another_timeline_is_told_once(told):
    steps = Steps()
    steps.look(at(0, eras=(None, 1)), 500.0, 500.1)
    steps.look(at(1, last=0, eras=(1, 2)), 501.0, 501.1)
    steps.look(at(2, last=1, eras=(2, 2)), 502.0, 502.1)

    assert told == [("timeline_changed", {"before": 1, "now": 2})]


def test_both_are_counted():
    counting = EventCounter()
    counting("clock_stepped", {"seconds": -7200.0})
    counting("clock_stepped", {"seconds": 60.0})
    counting("timeline_changed", {"before": 1, "now": 2})

    figures = counting.figures.snapshot()
    assert figures["clock_steps"] == {("back",): 1.0, ("forward",): 1.0}
    assert figures["timeline_changes"] == {(): 1.0}
