"""When to try again: the number of the attempt and its error in, a decision out. Pure.

A policy is any callable `(attempt, error) -> timedelta | None`; None means give up. `Exponential` and
`Constant` are ready-made ones that can also be stored with a job. `Retry` adds a rule for each class
of exception: another policy, `bury` or `ignore`.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Final, Protocol, final

import msgspec

from faultline.bounds import DELAY_MAX
from faultline.errors import ConfigError
from faultline.text.durations import format_duration

Chance = Callable[[], float]
"""A source of numbers from 0 up to 1; tests bring their own."""

_ZERO: Final = timedelta(0)


class RetryPolicy(Protocol):
    """The wait after the attempt of this number failed with this error; None gives up.

    >>> def patient(attempt: int, error: BaseException) -> timedelta | None:
    ...     return timedelta(hours=1) if attempt < 3 else None
    >>> decide(patient, 3, OSError("down"))
    Bury(reason='the retry policy gave up after attempt 3')
    """

    def __call__(self, attempt: int, error: BaseException, /) -> timedelta | None: ...


@final
@dataclass(frozen=True, slots=True)
class Again:
    """Try again after `delay`; `note` tells if the policy itself had failed."""

    delay: timedelta
    note: str = ""


@final
@dataclass(frozen=True, slots=True)
class Bury:
    """Give up now; the job is dead, whatever attempts are left."""

    reason: str = ""


@final
@dataclass(frozen=True, slots=True)
class Ignore:
    """Count the attempt as a success without a result."""


Decision = Again | Bury | Ignore

bury: Final = Bury()
"""In `Retry(on=...)`: this class of exception means that trying again is useless."""

ignore: Final = Ignore()
"""In `Retry(on=...)`: this class of exception means that there was nothing left to do."""


@final
@dataclass(frozen=True, slots=True)
class Exponential:
    """Wait `first`, then `factor` times as long after each failure, up to `cap`.

    Jitter only shortens, by up to its fraction, so that jobs that failed together come back apart
    and none waits longer than `cap`.

    >>> policy = Exponential(first=timedelta(seconds=1), factor=2, cap=timedelta(seconds=30), jitter=0)
    >>> [policy.delay(attempt).seconds for attempt in (1, 2, 3, 6, 1_000_000)]
    [1, 2, 4, 30, 30]
    """

    first: timedelta = timedelta(seconds=1)
    factor: float = 2.0
    cap: timedelta = timedelta(hours=1)
    jitter: float = 0.1

    def __post_init__(self) -> None:
        _check_wait("first", self.first)
        _check_wait("cap", self.cap)
        _check_number("factor", self.factor)
        _check_number("jitter", self.jitter)
        if not _ZERO <= self.first <= self.cap <= DELAY_MAX:
            raise ConfigError(
                "an exponential retry needs zero <= first <= cap <= 3600d, or the cap would come before "
                f"the first delay; got first={self.first} and cap={self.cap}"
            )
        if not 1.0 <= self.factor <= 1_000.0:
            raise ConfigError(f"factor goes from 1 (never longer) to 1000; got {self.factor}")
        if not 0.0 <= self.jitter <= 1.0:
            raise ConfigError(
                f"jitter is the fraction a delay may be shortened by, from 0 to 1; got {self.jitter}"
            )

    def __call__(self, attempt: int, error: BaseException, /) -> timedelta:
        return self.delay(attempt)

    def delay(self, attempt: int, chance: Chance = random.random) -> timedelta:
        """The wait after this attempt; the first attempt is number 1."""
        if not self.first:
            return _ZERO
        # The exponent is capped before it is used: 2.0 ** 1024 is already an error.
        exponent = min(max(attempt - 1, 0), self._exponent_max)
        delay = min(self.first.total_seconds() * self.factor**exponent, self.cap.total_seconds())
        return min(timedelta(seconds=delay * (1.0 - self.jitter * chance())), self.cap)

    @property
    def _exponent_max(self) -> int:
        if self.factor == 1.0:
            return 0
        return math.ceil(math.log(self.cap / self.first) / math.log(self.factor))


@final
@dataclass(frozen=True, slots=True)
class Constant:
    """Wait the same time after every failure.

    >>> Constant(timedelta(seconds=5)).delay(1_000).seconds
    5
    """

    wait: timedelta

    def __post_init__(self) -> None:
        _check_wait("wait", self.wait)
        if not _ZERO <= self.wait <= DELAY_MAX:
            raise ConfigError(f"a constant retry waits from zero to 3600d; got {format_duration(self.wait)}")

    def __call__(self, attempt: int, error: BaseException, /) -> timedelta:
        return self.wait

    def delay(self, attempt: int, chance: Chance = random.random) -> timedelta:
        """The wait after this attempt: always the same."""
        return self.wait


@final
@dataclass(frozen=True, slots=True)
class Retry:
    """A policy, and exceptions to it: the most specific class of the error decides.

    >>> soon = Constant(timedelta(seconds=5))
    >>> rules = Retry(on={ValueError: bury, FileNotFoundError: ignore, OSError: soon})
    >>> decide(rules, 1, FileNotFoundError())
    Ignore()
    >>> decide(rules, 1, ConnectionResetError()).delay.seconds
    5
    """

    policy: RetryPolicy = field(default_factory=Exponential)
    on: Mapping[type[BaseException], RetryPolicy | Bury | Ignore] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_callable("policy", self.policy)
        if not isinstance(self.on, Mapping):
            raise ConfigError(
                "Retry(on=...) maps classes of exceptions to a policy, bury or ignore, as in "
                f"on={{ValueError: bury}}; got {self.on!r:.60}"
            )
        for kind, word in self.on.items():
            if not (isinstance(kind, type) and issubclass(kind, BaseException)):
                raise ConfigError(f"Retry(on=...) maps classes of exceptions; {kind!r} is not one")
            if not isinstance(word, Bury | Ignore):
                _check_callable(f"on[{kind.__name__}]", word)
        object.__setattr__(self, "on", MappingProxyType(dict(self.on)))

    def word_for(self, error: BaseException) -> RetryPolicy | Bury | Ignore:
        """The rule for errors of this kind, or the policy where there is none."""
        for kind in type(error).__mro__:
            if kind in self.on:
                return self.on[kind]
        return self.policy

    def with_policy(self, policy: RetryPolicy) -> "Retry":
        """The same exceptions over another policy: the one stored with a job."""
        return replace(self, policy=policy)


def _check_callable(field_name: str, policy: object) -> None:
    if callable(policy) and not isinstance(policy, type):
        return
    hint = ""
    if isinstance(policy, int) and field_name == "policy":
        hint = f". How often a job is tried is max_attempts={policy}"
    elif isinstance(policy, str) and policy in ("bury", "ignore"):
        hint = f". It is faultline.{policy}, without quotes"
    elif isinstance(policy, type):
        hint = ". Call it: Exponential()"
    rules = "" if field_name == "policy" else "bury, ignore, "
    raise ConfigError(
        f"retry {field_name}: expected {rules}Exponential(...), Constant(...) or a function "
        f"(attempt, error) -> timedelta | None; got {policy!r:.100}{hint}"
    )


def _check_wait(field_name: str, wait: object) -> None:
    if not isinstance(wait, timedelta):
        seconds = wait if isinstance(wait, int | float) and not isinstance(wait, bool) else 5
        raise ConfigError(
            f"retry: {field_name} is a timedelta, such as timedelta(seconds={seconds}); got {wait!r:.60}"
        )


def _check_number(field_name: str, number: object) -> None:
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ConfigError(f"retry: {field_name} is a number; got {number!r:.60}")


def rules_of(retry: RetryPolicy | Retry | None) -> Retry:
    """Whatever a user gave as `retry`, as rules.

    >>> rules_of(None).policy == Exponential()
    True
    """
    match retry:
        case None:
            return Retry()
        case Retry():
            return retry
        case _:
            return Retry(policy=retry)


def decide(
    retry: RetryPolicy | Retry, attempt: int, error: BaseException, chance: Chance = random.random
) -> Decision:
    """Decide the fate of a job whose attempt of this number failed with this error.

    >>> decide(Exponential(jitter=0), attempt=3, error=OSError())
    Again(delay=datetime.timedelta(seconds=4), note='')
    """
    word = rules_of(retry).word_for(error)
    match word:
        case Bury() | Ignore():
            return word
        case Exponential() | Constant():
            return Again(word.delay(attempt, chance))
        case _:
            return _ask(word, attempt, error, chance)


def _ask(policy: RetryPolicy, attempt: int, error: BaseException, chance: Chance) -> Decision:
    """A policy of the user's own; if it breaks, the job still gets its retry."""
    try:
        delay = policy(attempt, error)
        if delay is None:
            return Bury(f"the retry policy gave up after attempt {attempt}")
        return Again(min(max(delay, _ZERO), DELAY_MAX))
    except Exception as mishap:
        note = f"the retry policy failed with {type(mishap).__name__}; the default was used"
        return Again(Exponential().delay(attempt, chance), note)


class _Stored(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A policy as kept in a job's row; durations in seconds."""

    kind: str
    first: float = 0.0
    factor: float = 1.0
    cap: float = 0.0
    jitter: float = 0.0
    wait: float = 0.0


def to_json(policy: RetryPolicy | Retry) -> str:
    """A built-in policy as small JSON text, to be stored with a job.

    >>> to_json(Constant(timedelta(seconds=5)))
    '{"kind":"constant","wait":5.0}'
    """
    match policy:
        case Exponential(first, factor, cap, jitter):
            stored = _Stored(
                "exponential", first.total_seconds(), float(factor), cap.total_seconds(), float(jitter)
            )
        case Constant(wait):
            stored = _Stored("constant", wait=wait.total_seconds())
        case _:
            raise ConfigError(
                "only Exponential and Constant can be stored with a job, as data; put a function or "
                "rules for exceptions on the task: @app.task(retry=...)"
            )
    return msgspec.json.encode(stored).decode()


def from_json(text: str | bytes) -> Exponential | Constant:
    """Read back what `to_json` wrote.

    >>> from_json('{"kind": "constant", "wait": 5}')
    Constant(wait=datetime.timedelta(seconds=5))
    """
    try:
        stored = msgspec.json.decode(text, type=_Stored)
        return _restore(stored)
    except (msgspec.DecodeError, OverflowError, ValueError) as error:
        raise ConfigError(f"the retry policy stored with the job cannot be read: {error}") from None


def _restore(stored: _Stored) -> Exponential | Constant:
    def seconds(number: float) -> timedelta:
        return timedelta(seconds=number)

    match stored.kind:
        case "exponential":
            return Exponential(seconds(stored.first), stored.factor, seconds(stored.cap), stored.jitter)
        case "constant":
            return Constant(seconds(stored.wait))
        case other:
            raise ConfigError(f"the retry policy stored with the job is of the unknown kind {other[:40]!a}")
