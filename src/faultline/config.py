"""Settings: their sources, and the rules between them."""

import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, cast

from faultline.bounds import check_lease_for, check_queue_name, check_timeout
from faultline.errors import ConfigError, InputError
from faultline.text.durations import format_duration

Pooler = Literal["auto", "none", "transaction"]

DEFAULT_LEASE: Final = timedelta(seconds=15)
JOBS_MAX_MAX: Final = 10_000
SUSPECTS_MAX: Final = 4

FROM_LEASE: Final = timedelta.min
"""The default of a setting that is computed from `lease_for`."""


PREFIX: Final = "FAULTLINE_"
SETTINGS: Final = tuple(
    PREFIX + name
    for name in (
        "DSN", "POOLER", "LOG", "DEBUG", "ALIVE_FILE", "SERVER", "API_KEY", "API_KEY_FILE", "TLS_CA",
        "TLS_CERT", "TLS_KEY", "RELEASE", "PG_BIN", "FAILPOINTS", "FAILPOINTS_ONCE",
    )
)  # fmt: skip
"""Every environment variable that Faultline reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of every part: how to reach the database, and the level of the log.

    >>> Settings.read(environment={"FAULTLINE_DSN": "postgresql://app:secret@db/shop"}).pooler
    'auto'
    """

    dsn: str | None = field(default=None, repr=False)
    pooler: Pooler = "auto"
    """The pooler before the database; `auto` finds out at the first connection."""
    log: str = "info"

    def __post_init__(self) -> None:
        check_dsn(self.dsn)
        if self.dsn is not None:
            object.__setattr__(self, "dsn", trimmed(self.dsn))
        if self.pooler not in ("auto", "none", "transaction"):
            raise ConfigError(f"FAULTLINE_POOLER is `auto`, `none` or `transaction`; got {self.pooler!r}")
        if self.log.upper() not in logging.getLevelNamesMapping():
            raise ConfigError(f"FAULTLINE_LOG is debug, info, warning or error; got {self.log!r}")

    @classmethod
    def read(
        cls,
        dsn: str | None = None,
        pooler: str | None = None,
        log: str | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> "Settings":
        """Arguments first, then FAULTLINE_DSN, FAULTLINE_POOLER and FAULTLINE_LOG, then the defaults."""
        if isinstance(dsn, str) and not dsn.strip():
            raise ConfigError("dsn is empty; give one, or leave it out for that in FAULTLINE_DSN")
        named = environment.get("FAULTLINE_DSN") if dsn is None else dsn
        if isinstance(named, str) and not named.strip():
            raise ConfigError("FAULTLINE_DSN is empty; name a database in it, or unset it")
        return cls(
            dsn=named,
            pooler=cast(Pooler, pooler or environment.get("FAULTLINE_POOLER") or "auto"),
            log=log or environment.get("FAULTLINE_LOG") or "info",
        )

    @property
    def prepare(self) -> bool | None:
        """Whether sessions are our own, with prepared statements and LISTEN; None: not known yet."""
        return None if self.pooler == "auto" else self.pooler == "none"

    def require_dsn(self) -> str:
        """The DSN, or a ConfigError that says how to give one."""
        if self.dsn is None:
            meant = [
                no_setting(name, "FAULTLINE_DSN")
                for name, meant in mistyped().items()
                if meant == "FAULTLINE_DSN"
            ]
            raise ConfigError(
                "no database was named: set FAULTLINE_DSN, such as postgresql://user@host/database, pass "
                "dsn=... (--dsn on the command line), or run `faultline dev`, which brings its own and "
                f"prints its DSN{''.join(f'. {said}' for said in meant)}"
            )
        return self.dsn


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """The settings of one worker, checked together.

    >>> config = WorkerConfig(queues={"billing": 5, "mail": None}, lease_for=timedelta(seconds=3))
    >>> config.tick, config.threads_max
    (datetime.timedelta(microseconds=750000), 10)
    """

    queues: Mapping[str, int | None] = field(default_factory=lambda: {"default": None})
    """Each queue, with the most jobs of it to run at once here, or None for no limit of its own."""
    jobs_max: int = 10
    threads_max: int = 0
    """Threads for plain handlers; 0 means as many as `jobs_max`."""
    children_max: int = 0
    """Child processes for handlers with run="process"; 0 means one a CPU, never more than `jobs_max`."""
    suspects_max: int = 0
    """Processes for jobs that crashed before and now run alone; 0 means four, never more than `jobs_max`."""
    recycle_after: int = 1000
    """The number of jobs after which a child process is replaced."""
    lease_for: timedelta = DEFAULT_LEASE
    tick: timedelta = FROM_LEASE
    poll_every: timedelta = timedelta(milliseconds=250)
    """The poll interval of an idle worker while no wake-up can reach it."""
    idle_poll_every: timedelta = timedelta(seconds=10)
    """The same while wake-ups reach it: the leading watchdog announces due jobs that come without one."""
    prefetch_for: timedelta = timedelta(milliseconds=100)
    buffer_max: int = 2_000
    settle_batch: int = 250
    settle_every: timedelta = timedelta(milliseconds=3)
    grace: timedelta = timedelta(seconds=25)
    timeout: timedelta = timedelta(hours=1)

    if not TYPE_CHECKING:  # a type checker knows the settings

        def __new__(cls, **settings):
            """Refuse a name that is no setting, with the one that may be meant."""
            for name in settings:
                if name not in cls.__dataclass_fields__:
                    raise ConfigError(_no_option(name, list(cls.__dataclass_fields__)))
            return object.__new__(cls)

    def __post_init__(self) -> None:
        self._check_types()
        self._fill_in()
        self._check_queues()
        self._check_counts()
        self._check_times()

    def _check_types(self) -> None:
        for name, value in ((name, getattr(self, name)) for name in self.__dataclass_fields__):
            wanted = type(self.__dataclass_fields__[name].default)
            if wanted is timedelta and not isinstance(value, timedelta):
                raise ConfigError(f"{name} is a timedelta, such as timedelta(seconds=15); got {value!r}")
        if not isinstance(self.queues, Mapping):
            raise ConfigError(
                "queues names each queue with the most jobs of it to run at once, or None: "
                f'{{"billing": 5, "mail": None}}; got {self.queues!r:.100}'
            )
        if isinstance(self.jobs_max, bool) or not isinstance(self.jobs_max, int):
            _count("jobs_max", self.jobs_max, JOBS_MAX_MAX)

    def _fill_in(self) -> None:
        set_once = object.__setattr__
        set_once(self, "queues", MappingProxyType(dict(self.queues)))
        if self.threads_max == 0:
            set_once(self, "threads_max", self.jobs_max)
        if self.children_max == 0:
            set_once(self, "children_max", min(_cpus(), self.jobs_max))
        if self.suspects_max == 0:
            set_once(self, "suspects_max", min(SUSPECTS_MAX, self.jobs_max))
        if self.tick == FROM_LEASE:
            short = self.lease_for < timedelta(seconds=4)
            set_once(self, "tick", self.lease_for / 4 if short else timedelta(seconds=1))

    def _check_queues(self) -> None:
        if not self.queues:
            raise ConfigError("queues is empty, so this worker would have nothing to do; name at least one")
        for name, limit in self.queues.items():
            check_queue_name(name)
            if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int)):
                raise ConfigError(
                    f"queue {name}: at most how many jobs at once is a whole number; got {limit!r}"
                )
            if limit is not None and limit < 1:
                raise ConfigError(
                    f"queue {name} may run {limit} jobs at once, so it would stand still; give it 1 or more, "
                    "or None for no limit of its own"
                )

    def _check_counts(self) -> None:
        _count("jobs_max", self.jobs_max, JOBS_MAX_MAX)
        _count("threads_max", self.threads_max, JOBS_MAX_MAX)
        _count("children_max", self.children_max, JOBS_MAX_MAX)
        _count("suspects_max", self.suspects_max, JOBS_MAX_MAX)
        _count("recycle_after", self.recycle_after, 1_000_000_000)
        _count("buffer_max", self.buffer_max, 10_000)
        _count("settle_batch", self.settle_batch, 10_000)

    def _check_times(self) -> None:
        check_lease_for(self.lease_for)
        check_timeout(self.timeout)
        for name in ("tick", "poll_every", "idle_poll_every"):
            if getattr(self, name) < timedelta(milliseconds=1):
                raise ConfigError(f"{name} must be at least 1ms, or the worker would spin")
        for name in ("prefetch_for", "settle_every", "grace"):
            if getattr(self, name) < timedelta(0):
                raise ConfigError(f"{name} cannot be negative")
        self._check_against_the_lease()

    def _check_against_the_lease(self) -> None:
        lease = f"lease_for is {format_duration(self.lease_for)}"
        if self.tick >= self.lease_for:
            raise ConfigError(
                f"tick must be shorter than a lease, or a lost job would wait for both; {lease}"
            )
        if self.prefetch_for * 2 >= self.lease_for:
            raise ConfigError(
                f"prefetch_for must be under half a lease, or jobs would age unstarted; {lease}"
            )
        if self.settle_every * 4 >= self.lease_for:
            raise ConfigError(
                f"settle_every must be under a quarter of a lease, or outcomes come late; {lease}"
            )


def _no_option(name: str, known: list[str]) -> str:
    from faultline.text.suggest import did_you_mean  # a mistake is rare, and a pacemaker need not load it

    hint = did_you_mean(name, known) or "."
    return f"WorkerConfig has no setting {name[:60]!a}{hint} It has {', '.join(known)}"


def _cpus() -> int:
    """The CPUs that this process may use: fewer than the machine's in a container."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def _count(name: str, value: int, highest: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= highest:
        raise ConfigError(f"{name} is a whole number from 1 to {highest}; got {value!r}")


def read_queues(words: Iterable[str]) -> dict[str, int | None]:
    """Queues as on a command line: `billing`, or `billing=5` for at most five at once.

    >>> read_queues(["billing=5", "mail"])
    {'billing': 5, 'mail': None}
    """
    queues: dict[str, int | None] = {}
    for word in words:
        name, equals, limit = word.partition("=")
        if equals and not (limit.isascii() and limit.isdigit() and 0 < int(limit[:6]) <= JOBS_MAX_MAX):
            raise InputError(
                f"{word[:100]!a}: after the = comes how many jobs may run at once, 1 to {JOBS_MAX_MAX}"
            )
        before, colon, number = word.partition(":")
        if colon and number.isdigit():
            raise InputError(f"{word[:100]!a}: at most so many at once is written {before[:63]}={number[:6]}")
        queues[check_queue_name(name)] = int(limit) if equals else None
    return queues


def mistyped(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that are no setting, with the setting of nearly the same name.

    By a letter more or less at most: Kubernetes itself sets FAULTLINE_PORT for a service called faultline.

    >>> mistyped({"FAULTLINE_DNS": "dbname=shop", "FAULTLINE_PORT": "tcp://10.0.0.7:8000"})
    {'FAULTLINE_DNS': 'FAULTLINE_DSN'}
    """
    from faultline.text.suggest import close_to  # a mistake is rare, and a pacemaker need not load it

    found: dict[str, str] = {}
    words = [name.removeprefix(PREFIX) for name in SETTINGS]
    for name in environment:
        if name not in SETTINGS and name.upper().startswith(PREFIX):
            word = name.upper().removeprefix(PREFIX)
            near = [known for known in close_to(word, words) if abs(len(known) - len(word)) <= 1]
            if near:
                found[name] = PREFIX + near[0]
    return found


def no_setting(name: str, meant: str) -> str:
    """The message about a variable whose name is nearly that of a setting.

    >>> no_setting("FAULTLINE_DNS", "FAULTLINE_DSN")
    'FAULTLINE_DNS is no setting; did you mean FAULTLINE_DSN?'
    """
    return f"{name[:60]} is no setting; did you mean {meant}?"


def check_dsn(dsn: str | None) -> None:
    """Refuse a DSN that no libpq could read, in words of our own.

    >>> check_dsn("postgresql://app@db/shop")
    """
    if dsn is None:
        return
    if not isinstance(dsn, str):
        raise ConfigError(
            f"a DSN is a str, such as postgresql://user@host/database; got one of type {type(dsn).__name__}"
        )
    if dsn.lstrip()[:1] in ("'", '"'):
        raise ConfigError(
            "the DSN begins with a quote; in an env file or a manifest no shell takes quotes away: "
            "leave the quotes out"
        )
    scheme, found, rest = dsn.strip().partition("://")
    if not found or "=" in scheme or scheme in ("postgresql", "postgres"):
        return
    base, plus, _ = scheme.partition("+")
    if base.lower() in ("postgresql", "postgres"):
        shown = redact(f"postgresql://{rest}")
        why = (
            f"{scheme}:// is SQLAlchemy's form of a URL" if plus else f"{scheme}:// is written in lower case"
        )
        raise ConfigError(f"{why}; Faultline takes it without that: {shown}")
    raise ConfigError(
        f"Faultline works on PostgreSQL; {scheme[:40]!a} is the address of something else. Write "
        "postgresql://user@host/database"
    )


def trimmed(dsn: str) -> str:
    """A DSN without the blanks around it; at the end of pairs they stay, since `\\ ` may end a password.

    >>> trimmed(" postgresql://db/shop\\n"), trimmed(" host=db ")
    ('postgresql://db/shop', 'host=db ')
    """
    begun = dsn.lstrip()
    return begun.rstrip() if "://" in begun.split("=", 1)[0] else begun


_SHOWN: Final = ("user", "host", "hostaddr", "port", "dbname")
_PAIR: Final = re.compile(r"\s*(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)(?:\s+|$)")


def redact(dsn: str) -> str:
    """A DSN that is safe to show: no password, no options; an unreadable one is not shown at all.

    >>> redact("postgresql://app:secret@db:5432/shop?options=-csearch_path%3Dx")
    'postgresql://app@db:5432/shop'
    >>> redact("host=db user=app password='s e c' dbname=shop")
    'user=app host=db dbname=shop'
    """
    return _redact_url(dsn) if "://" in dsn.split("=", 1)[0] else _redact_pairs(dsn)


def _redact_url(dsn: str) -> str:
    scheme, _, rest = dsn.partition("://")
    # The last @, because a password that was not escaped may contain one.
    user_part, at, place = rest.rpartition("@")
    user = user_part.partition(":")[0]
    place = re.split(r"[?#]", place, maxsplit=1)[0]
    if re.search(r"[/?#=@]", user) or not re.fullmatch(r"[\w.,:\[\]%/~-]*", place):
        return f"{scheme}://***"
    return f"{scheme}://{user}{at}{place}"


def _redact_pairs(dsn: str) -> str:
    pairs: dict[str, str] = {}
    end = 0
    while end < len(dsn) and (pair := _PAIR.match(dsn, end)):
        pairs[pair[1]] = pair[2]
        end = pair.end()
    if end != len(dsn):
        return "***"
    return " ".join(f"{name}={_redact_value(pairs[name])}" for name in _SHOWN if name in pairs)


def _redact_value(value: str) -> str:
    # libpq takes a whole DSN as the database's name, password and all.
    return redact(value.strip("'")) if "://" in value or "=" in value else value
