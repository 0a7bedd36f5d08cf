"""Delays: whatever the policy, the attempt and the luck, a delay is never negative, never over its cap."""

from datetime import timedelta
from typing import Final

from hypothesis import strategies as st

from faultline.bounds import DELAY_MAX
from faultline.retry import Again, Bury, Constant, Exponential, decide, from_json, to_json
from proof.properties.asking import asked
from proof.properties.ground import PropertyDatabase

some_delay = st.timedeltas(timedelta(0), DELAY_MAX)
some_attempt = st.one_of(st.integers(0, 30), st.integers(0, 10**6))
some_chance = st.floats(0, 1, exclude_max=True)
CRASHES_MAX: Final = 10_000


@st.composite
def some_policy(draw: st.DrawFn) -> Exponential:
    """Any exponential policy that may be made."""
    first, cap = sorted((draw(some_delay), draw(some_delay)))
    return Exponential(first, draw(st.floats(1, 1000)), cap, draw(st.floats(0, 1)))


@asked(policy=some_policy(), attempt=some_attempt, chance=some_chance)
def a_delay_stays_between_nothing_and_its_cap(policy: Exponential, attempt: int, chance: float) -> None:
    delay = policy.delay(attempt, lambda: chance)

    assert timedelta(0) <= delay <= policy.cap


@asked(policy=some_policy(), attempt=st.integers(1, 10**6))
def a_later_attempt_waits_no_less(policy: Exponential, attempt: int) -> None:
    soon, late = (policy.delay(number, lambda: 0.0) for number in (attempt, attempt + 1))

    assert soon <= late + timedelta(microseconds=1)


@asked(policy=some_policy(), attempt=some_attempt, chance=some_chance)
def jitter_only_shortens_and_by_its_fraction(policy: Exponential, attempt: int, chance: float) -> None:
    whole, shortened = policy.delay(attempt, lambda: 0.0), policy.delay(attempt, lambda: chance)

    assert shortened <= whole
    assert shortened >= whole * (1 - policy.jitter) - timedelta(milliseconds=1)


@asked(policy=st.one_of(some_policy(), some_delay.map(Constant)))
def a_stored_policy_is_read_back_as_it_was(policy: Exponential | Constant) -> None:
    again = from_json(to_json(policy))

    assert type(again) is type(policy)
    # Durations travel as seconds in a float: ten years to the microsecond take 49 of its 53 bits.
    assert [again.delay(attempt, lambda: 0.5) for attempt in (1, 2, 50)] == [
        policy.delay(attempt, lambda: 0.5) for attempt in (1, 2, 50)
    ]


@asked(answer=st.one_of(st.none(), st.timedeltas(), st.just("nonsense")), attempt=some_attempt)
def a_policy_of_the_users_own_cannot_break_the_retry(answer: object, attempt: int) -> None:
    decision = decide(lambda number, error: answer, attempt, OSError())  # type: ignore[arg-type]

    match decision:
        case Again(delay):
            assert isinstance(delay, timedelta)
            assert timedelta(0) <= delay <= DELAY_MAX
        case Bury():
            assert answer is None
        case _:
            raise AssertionError(decision)


@asked(on_database=True)
def a_crash_delay_grows_to_five_minutes(ground: PropertyDatabase) -> None:
    """Asked of SQL itself, for every number of crashes that a row can hold."""
    rows = ground.conn.execute(
        "select faultline.crash_delay(crashes) from generate_series(0, %s) as crashes", [CRASHES_MAX]
    ).fetchall()
    delays = [delay for (delay,) in rows]

    assert delays[:6] == [timedelta(0), timedelta(0), *(timedelta(seconds=2**power) for power in range(4))]
    assert delays == sorted(delays)
    assert delays[-1] == timedelta(minutes=5)


PROPERTIES: Final = (
    a_delay_stays_between_nothing_and_its_cap,
    a_later_attempt_waits_no_less,
    jitter_only_shortens_and_by_its_fraction,
    a_stored_policy_is_read_back_as_it_was,
    a_policy_of_the_users_own_cannot_break_the_retry,
    a_crash_delay_grows_to_five_minutes,
)
