"""Retry policies are pure: attempt and error in, decision out."""

from datetime import timedelta

import pytest

from faultline.errors import ConfigError
from faultline.retry import (
    Again,
    Bury,
    Constant,
    Exponential,
    Ignore,
    Retry,
    bury,
    decide,
    from_json,
    ignore,
    to_json,
)

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)


def never() -> float:
    return 0.0


def fully() -> float:
    return 1.0 - 2**-53


@pytest.mark.parametrize("attempt", [1, 2, 30, 1_025, 10**6, 10**300])
@pytest.mark.parametrize("chance", [never, fully])
@pytest.mark.parametrize(
    "policy",
    [
        Exponential(),
        Exponential(first=SECOND, factor=1_000.0, cap=timedelta(days=3_600), jitter=1.0),
        Exponential(first=timedelta(microseconds=1), factor=1.000001, cap=HOUR),
        Exponential(first=timedelta(0)),
        Exponential(first=HOUR, cap=HOUR),
    ],
)
def test_t7_a_delay_is_never_negative_and_never_over_the_cap(policy, chance, attempt):
    assert timedelta(0) <= policy.delay(attempt, chance) <= policy.cap


def test_t7_a_million_attempts_wait_the_cap():
    assert Exponential(cap=HOUR, jitter=0).delay(10**6) == HOUR


def test_a_delay_doubles_until_the_cap():
    policy = Exponential(first=SECOND, factor=2, cap=10 * SECOND, jitter=0)

    assert [policy.delay(n) for n in range(1, 7)] == [SECOND * n for n in (1, 2, 4, 8, 10, 10)]


def test_jitter_shortens_a_delay_by_up_to_its_fraction():
    policy = Exponential(first=10 * SECOND, jitter=0.5)

    assert policy.delay(1, never) == 10 * SECOND
    assert policy.delay(1, lambda: 0.5) == 7.5 * SECOND


def test_an_attempt_that_never_was_waits_like_the_first():
    assert Exponential(jitter=0).delay(0) == Exponential(jitter=0).delay(1) == SECOND


@pytest.mark.parametrize(
    "options",
    [
        {"first": -SECOND},
        {"first": 2 * HOUR},
        {"cap": timedelta.max},
        {"factor": 0.5},
        {"factor": float("nan")},
        {"factor": float("inf")},
        {"jitter": -0.1},
        {"jitter": 1.1},
        {"jitter": float("nan")},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(options):
    with pytest.raises(ConfigError):
        Exponential(**options)


def test_the_most_specific_exception_class_decides():
    rules = Retry(
        on={
            Exception: Constant(SECOND),
            LookupError: bury,
            KeyError: ignore,
        }
    )

    assert decide(rules, 1, KeyError()) == Ignore()
    assert decide(rules, 1, IndexError()) == Bury()
    assert decide(rules, 1, ValueError()) == Again(SECOND)


def test_errors_without_a_rule_follow_the_policy():
    rules = Retry(Constant(HOUR), on={KeyError: bury})

    assert decide(rules, 1, OSError()) == Again(HOUR)


def test_a_function_may_choose_the_delay():
    assert decide(lambda attempt, error: SECOND * attempt, 3, OSError()) == Again(3 * SECOND)


def test_a_function_that_returns_none_gives_up():
    decision = decide(lambda attempt, error: None, 3, OSError())

    assert isinstance(decision, Bury)
    assert "attempt 3" in decision.reason


@pytest.mark.parametrize(("delay", "kept"), [(-SECOND, timedelta(0)), (timedelta.max, timedelta(days=3_600))])
def test_a_delay_of_the_users_own_is_kept_within_bounds(delay, kept):
    assert decide(lambda attempt, error: delay, 1, OSError()) == Again(kept)


@pytest.mark.parametrize(
    "broken",
    [lambda attempt, error: 1 / 0, lambda attempt, error: 5, lambda: SECOND],
    ids=["raises", "returns no timedelta", "takes no arguments"],
)
def test_a_policy_that_breaks_does_not_cost_the_job_its_retry(broken):
    decision = decide(broken, 1, OSError(), chance=never)

    assert isinstance(decision, Again)
    assert decision.delay == SECOND
    assert "the retry policy failed" in decision.note


@pytest.mark.parametrize(
    "retry", [{"policy": 5}, {"on": {5: bury}}, {"on": {KeyError: 5}}, {"policy": Exponential}]
)
def test_rules_that_are_none_are_refused(retry):
    with pytest.raises(ConfigError):
        Retry(**retry)


def test_rules_cannot_be_changed_afterwards():
    words: dict[type[BaseException], Bury] = {KeyError: bury}
    rules = Retry(on=words)
    words[ValueError] = bury

    assert isinstance(decide(rules, 1, ValueError()), Again)
    with pytest.raises(TypeError):
        rules.on[ValueError] = bury  # type: ignore[index]


def test_a_stored_policy_keeps_the_tasks_exceptions():
    rules = Retry(on={KeyError: bury}).with_policy(Constant(HOUR))

    assert decide(rules, 1, KeyError()) == Bury()
    assert decide(rules, 1, OSError()) == Again(HOUR)


@pytest.mark.parametrize(
    "policy", [Exponential(), Exponential(SECOND / 3, 1.5, HOUR, 0.0), Constant(timedelta(0)), Constant(HOUR)]
)
def test_a_built_in_policy_is_stored_and_read_back_the_same(policy):
    assert from_json(to_json(policy)) == policy


@pytest.mark.parametrize("policy", [lambda attempt, error: None, Retry()])
def test_only_data_can_be_stored_with_a_job(policy):
    with pytest.raises(ConfigError, match="put a function or rules"):
        to_json(policy)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"kind":"os.system"}',
        '{"kind":"constant","wait":-1}',
        '{"kind":"constant","wait":1e300}',
        "[]",
    ],
)
def test_a_stored_policy_that_cannot_be_read_is_named(text):
    with pytest.raises(ConfigError):
        from_json(text)
