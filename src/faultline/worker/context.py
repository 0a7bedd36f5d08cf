"""A handler's own context: what one handler sets there, the next one of the same runner does not see."""

from collections.abc import Coroutine, Generator
from contextvars import Context
from types import coroutine
from typing import Any


async def inside(context: Context, handler: Coroutine[Any, Any, Any]) -> Any:
    """Await a coroutine within a context, without a task made for it: that would cost more than the job."""
    try:
        waited_for = context.run(handler.send, None)
    except StopIteration as end:  # it never waited
        return end.value
    return await _go_on(context, handler, waited_for)


@coroutine
def _go_on(context: Context, handler: Coroutine[Any, Any, Any], waited_for: Any) -> Generator[Any, Any, Any]:
    """Hand on to the loop what the handler waits for, and back to the handler what became of it."""
    while True:
        try:
            answer = yield waited_for
        except GeneratorExit:
            context.run(handler.close)
            raise
        except BaseException as error:
            step, said = handler.throw, error
        else:
            step, said = handler.send, answer
        try:
            waited_for = context.run(step, said)
        except StopIteration as end:
            return end.value
