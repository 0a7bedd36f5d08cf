"""Carries calls on a connection of asyncpg."""

from collections.abc import Callable
from typing import Any, TypeVar

from asyncpg import InterfaceError, PostgresError

from faultline.integrations.text_call import text_call
from faultline.store.call import Call
from faultline.store.carrier import error_for, no_text
from faultline.store.driver.sqlstate import ErrorFacts, went_away

T = TypeVar("T")


class AsyncpgCarrier:
    """A connection of asyncpg, or one that its pool has lent. It has no hook for the commit."""

    def __init__(self, conn: Any) -> None:
        self._conn = conn

    async def run(self, call: Call[T]) -> T:
        sql, args = text_call(call, "numeric_dollar")
        try:
            return call.read([tuple(row) for row in await self._conn.fetch(sql, *args.values())])
        except PostgresError as fault:
            raise error_for(facts_of(fault), fault) from fault
        except (InterfaceError, OSError) as fault:
            raise went_away(str(fault)) from fault
        except UnicodeEncodeError as fault:
            raise no_text(fault) from fault

    async def in_transaction(self) -> bool:
        return bool(self._conn.is_in_transaction())

    def watch(self) -> None: ...

    async def was_ended(self) -> bool:
        return not self._conn.is_in_transaction()

    def after_commit(self, act: Callable[[], object]) -> bool:
        return False


def facts_of(fault: Any) -> ErrorFacts:
    """What the server said, as asyncpg has it."""
    return ErrorFacts(
        fault.sqlstate or "", fault.message or str(fault), fault.detail, fault.hint, fault.constraint_name,
        fault.table_name, fault.column_name, fault.server_source_function,
    )  # fmt: skip
