"""The kinds of transaction that a handler may be given, and who begins them."""

import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, overload

from faultline.errors import ConfigError
from faultline.suggest import did_you_mean

if TYPE_CHECKING:
    from faultline.extensions.parameters import Injection

T = TypeVar("T")

MARK: Final = "_faultline_transaction"
"""The attribute of our own transaction types: "async" or "plain"."""


class TransactionProvider(Protocol):
    """Begins a transaction of one kind for a handler, and commits it.

    `begin` gives a context manager, an async one where `is_async`. Its object is what the handler is given,
    and what `job.complete_in` takes. Leaving it by an exception must roll back. `commit` is called inside it
    after the completion, where leaving it does not commit by itself.
    """

    @property
    def is_async(self) -> bool:
        """Whether it is for async handlers."""
        ...

    @property
    def injects(self) -> bool:
        """Whether the handler is given the object, as a parameter of this kind."""
        ...

    def begin(self) -> Any:
        """A new context manager, for one job."""
        ...

    def commit(self, conn: Any) -> Any:
        """Commit, or nothing; awaitable where `is_async`."""
        ...

    def was_ended(self, conn: Any) -> bool:
        """Whether the handler itself ended the transaction."""
        ...


class MadeTransactions:
    """The provider that `register` makes of a sessionmaker, or of a function of context managers."""

    injects = True

    def __init__(self, kind: type[Any], maker: Callable[[], Any], is_async: bool) -> None:
        self._maker = maker
        self.is_async = is_async
        self._commits = is_session(kind)

    def begin(self) -> Any:
        return self._maker()

    def commit(self, conn: Any) -> Any:
        if self._commits:
            return conn.commit()
        return _nothing() if self.is_async else None

    def was_ended(self, conn: Any) -> bool:
        return False


async def _nothing() -> None:
    return None


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
        self._providers[kind] = (
            maker if _is_provider(maker) else MadeTransactions(kind, maker, _is_async(kind, maker))
        )

    def use(self, name: str, provider: TransactionProvider) -> None:
        """Provide what `@app.task(transaction=NAME)` asks for, as integrations of frameworks do."""
        self._providers[name] = provider

    def find(self, kind: Any) -> TransactionProvider | None:
        """The provider of a type, or of a name."""
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


def is_session(kind: Any) -> bool:
    """Whether a type looks like a session, or a connection, that commits by itself."""
    return isinstance(kind, type) and all(
        callable(getattr(kind, verb, None)) for verb in ("commit", "rollback", "execute")
    )


def is_async_session(kind: type[Any]) -> bool:
    """Whether its commit has to be awaited."""
    return inspect.iscoroutinefunction(getattr(kind, "commit", None))


def _is_provider(maker: Any) -> bool:
    return all(hasattr(maker, name) for name in ("begin", "commit", "is_async", "injects", "was_ended"))


def _is_async(kind: type[Any], maker: Any) -> bool:
    """By the type where it commits by itself, else by what the maker's function is made of."""
    if not callable(maker):
        raise ConfigError(f"the maker of {_named(kind)} has to be callable without arguments, not {maker!r}")
    if is_session(kind):
        return is_async_session(kind)
    made = inspect.unwrap(maker)
    if inspect.isasyncgenfunction(made) or inspect.isgeneratorfunction(made):
        return inspect.isasyncgenfunction(made)
    raise ConfigError(
        f"the maker of {_named(kind)} has to be a function under @asynccontextmanager or @contextmanager, "
        "so that it can be told which handlers it is for; or a TransactionProvider"
    )


def _named(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else repr(kind)
