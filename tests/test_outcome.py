"""Outcomes are values; three of them may also be raised."""

import contextlib
import pickle
from datetime import timedelta

import pytest

from faultline.errors import OutOfBounds
from faultline.outcome import Cancel, Dead, Done, Failed, Released, Snooze

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("word", [Snooze(MINUTE, "later"), Cancel("no"), Dead("enough")])
def test_snooze_cancel_and_dead_may_be_raised(word):
    with pytest.raises(type(word)) as caught:
        raise word

    assert caught.value == word


@pytest.mark.parametrize("word", [Snooze(MINUTE, "later"), Cancel("no"), Dead("enough")])
def test_a_raised_outcome_passes_through_a_context_manager(word):
    @contextlib.contextmanager
    def block():
        yield

    with pytest.raises(type(word)), block():
        raise word


@pytest.mark.parametrize("word", [Snooze(MINUTE), Cancel(), Dead(), Done(), Failed("x"), Released()])
def test_an_outcome_cannot_be_changed(word):
    with pytest.raises(AttributeError):
        setattr(word, type(word).__match_args__[0], "another")


def test_outcomes_are_equal_by_what_they_say():
    assert Snooze(MINUTE) == Snooze(MINUTE)
    assert Cancel("a") != Dead("a")
    assert len({Dead("a"), Dead("a"), Dead("b")}) == 2


def test_outcomes_can_be_matched():
    match Snooze(MINUTE, "later"):
        case Snooze(delay, reason):
            assert (delay, reason) == (MINUTE, "later")


@pytest.mark.parametrize("word", [Snooze(MINUTE, "later"), Cancel("no"), Dead("enough")])
def test_an_outcome_survives_pickling(word):
    assert pickle.loads(pickle.dumps(word)) == word


def test_a_snooze_into_the_past_is_refused():
    with pytest.raises(OutOfBounds, match="zero or more"):
        Snooze(-MINUTE)


def test_a_snooze_takes_a_timedelta():
    with pytest.raises(TypeError, match=r"timedelta.*not int"):
        Snooze(5)  # type: ignore[arg-type]


def test_a_job_that_died_without_a_reason_says_so():
    """A person looks at it later: an empty error would tell nothing."""
    assert str(Dead()) == Dead("").reason == "Dead, and no reason was given"
