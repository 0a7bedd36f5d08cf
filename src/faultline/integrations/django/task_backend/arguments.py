"""The arguments of a task as the JSON of its job: by name, and those by position under `*args`."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from faultline.args import ArgsCodec
from faultline.args.document import encode_document
from faultline.errors import BadArguments

BY_POSITION: Final = "*args"
BACKEND: Final = "*backend"
"""The backend's alias, where it is not the one that the task was declared with."""


class CallCodec(ArgsCodec):
    """Keeps a call as its caller wrote it: `django.tasks` binds no arguments.

    >>> codec = CallCodec("shop.tasks.charge")
    >>> codec.encode((7,), {"note": "gift"})
    '{"*args":[7],"note":"gift"}'
    >>> codec.decode('{"order_id":7}')
    {'args': [], 'kwargs': {'order_id': 7}, 'backend': None}
    """

    def __init__(self, task: str) -> None:
        super().__init__(task, ())

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any], backend: str | None = None) -> str:
        for name in (BY_POSITION, BACKEND):
            if name in kwargs:
                raise BadArguments(f"task {self.task}: an argument cannot be called {name}")
        document = {**kwargs, **({BY_POSITION: list(args)} if args else {})}
        if backend is not None:
            document[BACKEND] = backend
        return encode_document(document, f"args of task {self.task}").decode()

    def decode(self, text: str | bytes) -> dict[str, Any]:
        return split(decoded(text))

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}


def check_call(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """BadArguments for a call that Python itself would refuse. A decorator's own signature counts."""
    given = (None, *args) if task.takes_context else args
    try:
        _signature(task.func).bind(*given, **kwargs)
    except TypeError as error:
        raise BadArguments(f"task {task.module_path}: {error}; nothing was enqueued") from None


@cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function, follow_wrapped=False)


def decoded(text: str | bytes) -> Any:
    import msgspec

    return msgspec.json.decode(text)


def split(document: Any) -> dict[str, Any]:
    """The arguments by position and by name in a job's document, and its backend."""
    if not isinstance(document, dict):
        return {"args": [], "kwargs": {}, "backend": None}
    named = {name: value for name, value in document.items() if name not in (BY_POSITION, BACKEND)}
    by_position = document.get(BY_POSITION)
    return {
        "args": by_position if isinstance(by_position, list) else [],
        "kwargs": named,
        "backend": document.get(BACKEND),
    }
