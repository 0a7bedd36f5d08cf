"""The kinds of transaction that a handler may be given, and who begins them."""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, overload

from faultline.errors import ConfigError
from faultline.extensions.django_transactions import DjangoTransactions
from faultline.extensions.open_transaction import begin_on, is_open
from faultline.text.suggest import did_you_mean

if TYPE_CHECKING:
    from faultline.extensions.parameters import Injection

T = TypeVar("T")

MARK: Final = "_faultline_transaction"
"""The attribute of our own transaction types: "async" or "plain"."""


class TransactionProvider(Protocol):
    """Begins transactions of one kind, each for one job.

    `begin` gives a context manager, an async one where `is_async`. Leaving it commits, leaving it by an
    exception rolls back. It gives the object that the handler is given, where it has a parameter for it, and
    on which `job.complete_in` completes the job.
    """

    @property
    def is_async(self) -> bool:
        """Whether it is for async handlers."""
        ...

    def begin(self) -> Any:
        """A new context manager."""
        ...


class MadeTransactions:
    """The provider that `register` makes of a sessionmaker, or of a function of context managers."""

    def __init__(self, maker: Callable[[], Any], is_async: bool) -> None:
        self._maker = maker
        self.is_async = is_async

    def begin(self) -> Any:
        return self._abegin() if self.is_async else self._begin()

    @contextmanager
    def _begin(self) -> Iterator[Any]:
        with _entered(self._maker(), "__enter__") as conn:
            if is_open(conn) is False:
                with begin_on(conn):
                    yield conn
            else:  # the maker began it
                yield conn

    @asynccontextmanager
    async def _abegin(self) -> AsyncIterator[Any]:
        async with _entered(self._maker(), "__aenter__") as conn:
            if is_open(conn) is False:
                async with begin_on(conn):
                    yield conn
            else:
                yield conn


class Transactions:
    """`app.transactions`: the kinds that this app's handlers may be given.

    >>> class Session:
    ...     def __enter__(self): return self
    ...     def __exit__(self, *error): ...
    ...     def execute(self): ...
    ...     def commit(self): ...
    ...     def rollback(self): ...
    >>> transactions = Transactions()
    >>> transactions.register(Session, Session)
    >>> transactions.find(Session).is_async
    False
    """

    def __init__(self) -> None:
        self._providers: dict[Any, TransactionProvider] = {}

    @overload
    def register(self, kind: type[T], maker: Callable[[], AbstractAsyncContextManager[T]], /) -> None: ...
    @overload
    def register(self, kind: type[T], maker: Callable[[], AbstractContextManager[T]], /) -> None: ...
    @overload
    def register(self, kind: type[Any], maker: TransactionProvider, /) -> None: ...

    def register(self, kind: type[Any], maker: Any, /) -> None:
        """Give handlers that ask for this type a transaction which `maker` begins.

        `maker` is a sessionmaker of SQLAlchemy, or any callable that gives a context manager of a connection
        inside its transaction:

            app.transactions.register(AsyncSession, async_sessionmaker(engine))
        """
        if not isinstance(kind, type):
            raise ConfigError(f"app.transactions.register takes a type first, not {kind!r}")
        if hasattr(kind, MARK):
            raise ConfigError(f"{kind.__name__} is built in: a handler that asks for it is given one")
        if kind in self._providers:
            raise ConfigError(f"a maker of {_named(kind)} is registered already; a type has one")
        made = isinstance(maker, type) or not hasattr(maker, "begin") or not hasattr(maker, "is_async")
        self._providers[kind] = MadeTransactions(maker, _is_async(kind, maker)) if made else maker

    def use(self, name: str, provider: TransactionProvider) -> None:
        """Provide what `@app.task(transaction=NAME)` asks for; "django" is there where Django is installed.

        app.transactions.use("django", DjangoTransactions(using="orders"))
        """
        self._providers[name] = provider

    def find(self, kind: Any) -> TransactionProvider | None:
        """The provider of a type, or of a name."""
        if kind == "django" and kind not in self._providers and find_spec("django") is not None:
            self._providers[kind] = DjangoTransactions()
        return self._providers.get(kind)

    def __contains__(self, kind: object) -> bool:
        return kind in self._providers

    def check(self, task: str, is_async: bool, injection: "Injection") -> None:
        """ConfigError for a kind that nothing provides, or that is of the other colour."""
        kind = injection.transaction
        if kind is None or hasattr(kind, MARK):
            return
        provider = self.find(kind)
        if provider is None:
            raise ConfigError(self._unknown(task, kind))
        if provider.is_async != is_async:
            raise ConfigError(colours(task, _named(kind), of_async=provider.is_async))

    def _unknown(self, task: str, kind: Any) -> str:
        if isinstance(kind, str):
            names = [name for name in self._providers if isinstance(name, str)]
            return (
                f"task {task} asks for transaction={kind!r}, and nothing provides it"
                f"{did_you_mean(kind, names) or ':'} install the integration of that framework"
            )
        return (
            f"task {task} asks for a {_named(kind)}, and no maker of it is registered: write "
            f"app.transactions.register({kind.__name__}, maker) before the worker starts, or annotate the "
            "parameter with Transaction for a connection of Faultline's own pool"
        )


def colours(task: str, kind: str, *, of_async: bool) -> str:
    """The message for an async type in a plain handler, or the other way round."""
    if of_async:
        return f"task {task} is a plain function, and {kind} is for async ones: write `async def`"
    return f"task {task} is async, and {kind} is for plain functions: write `def`, or take its async form"


_SHAPES: Final = (("commit", "rollback", "execute"), ("is_in_transaction", "transaction", "execute"))
"""Sessions of SQLAlchemy and connections of psycopg; connections of asyncpg."""


def is_session(kind: Any) -> bool:
    """Whether a type looks like a session, or like a connection that has transactions."""
    return isinstance(kind, type) and any(
        all(callable(getattr(kind, verb, None)) for verb in shape) for shape in _SHAPES
    )


def is_async_session(kind: type[Any]) -> bool:
    """Whether what it does has to be awaited."""
    return inspect.iscoroutinefunction(getattr(kind, "execute", None))


def _is_async(kind: type[Any], maker: Any) -> bool:
    """By the type where it commits by itself, else by what the maker's function is made of."""
    if not callable(maker):
        raise ConfigError(f"the maker of {_named(kind)} has to be callable without arguments, not {maker!r}")
    if inspect.iscoroutinefunction(maker):
        raise ConfigError(
            f"the maker of {_named(kind)} is a coroutine, which is no context manager: put "
            "@asynccontextmanager above it, and yield the connection instead of returning it"
        )
    if inspect.isasyncgenfunction(maker) or inspect.isgeneratorfunction(maker):
        wrapper = "asynccontextmanager" if inspect.isasyncgenfunction(maker) else "contextmanager"
        raise ConfigError(
            f"the maker of {_named(kind)} is a generator, which is no context manager: put "
            f"@{wrapper} above it"
        )
    if is_session(kind):
        return is_async_session(kind)
    made = inspect.unwrap(maker)
    if inspect.isasyncgenfunction(made) or inspect.isgeneratorfunction(made):
        return inspect.isasyncgenfunction(made)
    raise ConfigError(
        f"the maker of {_named(kind)} has to be a function under @asynccontextmanager or @contextmanager, "
        "so that it can be told which handlers it is for; or a TransactionProvider"
    )


def _entered(made: Any, verb: str) -> Any:
    """What a maker made, where it can be entered as its handlers need it."""
    if not hasattr(type(made), verb):
        needed = "an async context manager" if verb == "__aenter__" else "a context manager"
        raise ConfigError(
            f"a maker given to app.transactions.register made a {_named(type(made))}, which is not {needed}. "
            "AsyncSession takes async_sessionmaker(async_engine), and Session takes sessionmaker(engine)"
        )
    return made


def _named(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else repr(kind)
