"""Unique: when two enqueues of one key are one job, and what the second of them changes."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from inspect import Parameter
from typing import Any, Final, Literal

from faultline.args.document import encode_document
from faultline.bounds import check_delay
from faultline.errors import BadName, ConfigError, OutOfBounds
from faultline.text.suggest import did_you_mean

KeyRule = Literal["while_queued", "while_unfinished", "per_period", "throttle", "replace", "debounce"]
"""What an enqueue does with a key that names a job already, as SQL, HTTP and gRPC name it."""

KEY_RULES: Final[tuple[KeyRule, ...]] = (
    "while_queued", "while_unfinished", "per_period", "throttle", "replace", "debounce",
)  # fmt: skip
PERIOD_MIN: Final = timedelta(seconds=1)
KEY_CHARS_MAX: Final = 200
"""A longer computed key is hashed; the rest of the 255 characters is for the number of a period."""

_PLAIN: Final = re.compile(r"[\x20-\x7e]+")


@dataclass(frozen=True, slots=True)
class Unique:
    """Which other job of the same key counts as this one; made by its methods.

    The key is the one given by `using(key=...)`, or is made of the task and the arguments named `by`; of all
    arguments if none are named.

    >>> from faultline import Faultline
    >>> app = Faultline("dbname=shop")
    >>> @app.task(unique=Unique.while_queued(by=["tenant"]))
    ... def sync(tenant: int, full: bool = False) -> None: ...
    >>> sync.new(tenant=7).key
    'sync{"tenant":7}'
    """

    rule: KeyRule
    by: tuple[str, ...] | None = None
    delay: timedelta | None = None
    key_for: timedelta | None = None

    @classmethod
    def while_queued(cls, *, by: Iterable[str] | None = None) -> "Unique":
        """One job that waits: the job that is found begins after this enqueue has committed.

        A job that runs already does not count, for it may have read before the commit.

        >>> Unique.while_queued(by=["tenant"]).by
        ('tenant',)
        """
        return cls("while_queued", _names(by))

    @classmethod
    def while_unfinished(cls, *, by: Iterable[str] | None = None) -> "Unique":
        """One job that waits, runs or is tried again: the next is made when it has ended.

        >>> Unique.while_unfinished().rule
        'while_unfinished'
        """
        return cls("while_unfinished", _names(by))

    @classmethod
    def per_period(cls, period: timedelta, *, by: Iterable[str] | None = None) -> "Unique":
        """One job in each period of the database's clock; periods are counted from 1970, in UTC.

        >>> Unique.per_period(timedelta(hours=1)).key_for
        datetime.timedelta(seconds=3600)
        """
        return cls("per_period", _names(by), key_for=_period(period))

    @classmethod
    def throttle(cls, period: timedelta, *, by: Iterable[str] | None = None) -> "Unique":
        """One unfinished job, and none for a period after it has ended.

        >>> Unique.throttle(timedelta(minutes=5)).rule
        'throttle'
        """
        return cls("throttle", _names(by), key_for=_period(period))

    @classmethod
    def replace(cls, *, by: Iterable[str] | None = None) -> "Unique":
        """One job that has not begun: it gets the newest arguments. One that has begun keeps its own.

        >>> Unique.replace(by=["tenant"]).rule
        'replace'
        """
        return cls("replace", _names(by))

    @classmethod
    def debounce(
        cls, wait: timedelta, *, at_most: timedelta = timedelta(days=1), by: Iterable[str] | None = None
    ) -> "Unique":
        """One job that begins when no enqueue has come for `wait`, with the newest arguments.

        While enqueues go on it begins `at_most` after the first of them.

        >>> Unique.debounce(timedelta(seconds=5), at_most=timedelta(minutes=1)).delay
        datetime.timedelta(seconds=5)
        """
        if check_delay(wait, "wait") <= timedelta(0):
            raise OutOfBounds("wait is above zero: without a wait nothing is debounced; use Unique.replace()")
        if check_delay(at_most, "at_most") < wait:
            raise OutOfBounds("at_most is no shorter than wait, or the wait could never be kept")
        return cls("debounce", _names(by), wait, at_most)

    def options(self) -> dict[str, Any]:
        """The options of a job that say it."""
        chosen: dict[str, Any] = {"key_rule": self.rule, "key_for": self.key_for}
        return chosen if self.delay is None else {**chosen, "delay": self.delay, "run_at": None}


def check_key_rule(rule: str) -> str:
    """One of the rules by its name, or OutOfBounds with the name that may be meant.

    >>> check_key_rule("while_queued")
    'while_queued'
    """
    if rule not in KEY_RULES:
        hint = did_you_mean(rule, KEY_RULES)
        raise OutOfBounds(f"{rule[:60]!a} is no key rule{hint or '.'} The rules are {', '.join(KEY_RULES)}")
    return rule


def _names(by: Iterable[str] | None) -> tuple[str, ...] | None:
    if by is None:
        return None
    names = (by,) if isinstance(by, str) else tuple(by)
    if not names:
        raise ConfigError("by names arguments of the task; with none, all jobs of it would be one job")
    return names


def _period(period: timedelta) -> timedelta:
    if check_delay(period, "period") < PERIOD_MIN:
        raise OutOfBounds("a period is a second or longer")
    return period


def key_maker(task: str, parameters: Mapping[str, Parameter], unique: Unique) -> Callable[[str], str]:
    """Make the keys of a task's jobs from their encoded args.

    >>> make = key_maker("sync", {"tenant": Parameter("tenant", Parameter.KEYWORD_ONLY)}, Unique.replace())
    >>> make('{"tenant": 7}')
    'sync{"tenant":7}'
    """
    names = tuple(parameters) if unique.by is None else unique.by
    for name in names:
        if name not in parameters:
            hint = did_you_mean(name, parameters) or f". It takes {', '.join(parameters) or 'none'}"
            raise BadName(f"task {task} has no argument {name[:60]!a} to be unique by{hint}")
    # An argument that is left out and one that is given its default are the same call.
    defaults = {
        name: json.loads(encode_document({name: parameters[name].default}, f"args of task {task}"))[name]
        for name in names
        if parameters[name].default is not Parameter.empty
    }

    def make(args: str) -> str:
        given = defaults | json.loads(args)
        chosen = {name: given[name] for name in names}
        text = task + json.dumps(chosen, sort_keys=True, separators=(",", ":"))
        if len(text) <= KEY_CHARS_MAX and _PLAIN.fullmatch(text):
            return text
        return f"{task[:120]}:{hashlib.sha256(text.encode()).hexdigest()}"

    return make
