"""Arguments to JSON and back, for one task."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from faultline.args import models
from faultline.args.document import encode_document
from faultline.args.signature import Argument, arguments_of, parameters_of, struct_of
from faultline.errors import BadArguments

_PLACE: Final = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<place>.*)`)?$", re.DOTALL)
_GOT: Final = re.compile(r"got `\w+`$")


class ArgsCodec:
    """Check a call against the handler's signature and keep it as JSON; read it back in the worker.

    Encoding reads its own JSON back with a worker's decoder, so that whatever is enqueued can be run.

    >>> def charge(order_id: int, note: str = "") -> None: ...
    >>> codec = ArgsCodec.of(charge, "charge")
    >>> codec.encode((7,), {})
    '{"order_id":7}'
    >>> codec.decode('{"order_id":7}')
    {'order_id': 7}
    >>> codec.encode((), {"order_id": "seven"})
    Traceback (most recent call last):
    faultline.errors.BadArguments: task charge, argument order_id: expected `int`, got `str`
    """

    def __init__(self, task: str, arguments: tuple[Argument, ...], *, forbid_unknown: bool = True) -> None:
        self.task = task
        self.arguments = arguments
        self._subject = f"args of task {task}"
        self._by_position = tuple(argument.name for argument in arguments if argument.by_position)
        self._may_be_unset = not all(argument.required for argument in arguments)
        # A caller is always held to the names; only a worker may overlook those of a newer caller.
        strict = struct_of(arguments, task, forbid_unknown=True)
        lenient = struct_of(arguments, task, forbid_unknown=False)
        self._strict = msgspec.json.Decoder(strict, dec_hook=models.load)
        self._decoder = (
            self._strict if forbid_unknown else msgspec.json.Decoder(lenient, dec_hook=models.load)
        )

    @classmethod
    def of(
        cls,
        handler: Callable[..., Any],
        task: str,
        parameters: Mapping[str, inspect.Parameter] | None = None,
        *,
        forbid_unknown: bool = True,
    ) -> "ArgsCodec":
        """The codec for a handler, or for those of its parameters that are arguments."""
        chosen = parameters_of(handler, task) if parameters is None else parameters
        return cls(task, arguments_of(chosen, task), forbid_unknown=forbid_unknown)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The JSON text of a call, or BadArguments or BadDocument before anything is sent."""
        bound = self._bind(args, kwargs) if args else kwargs
        data = encode_document(bound, self._subject)
        try:
            self._strict.decode(data)
        except Exception as error:
            raise self._explain(error, bound) from None
        return data.decode()

    def decode(self, text: str | bytes) -> dict[str, Any]:
        """The keyword arguments a job's args stand for, with the types of the signature."""
        try:
            decoded = self._decoder.decode(text)
        except Exception as error:
            raise self._explain(error, {}) from None
        kwargs = msgspec.structs.asdict(decoded)
        if self._may_be_unset:
            return {name: value for name, value in kwargs.items() if value is not UNSET}
        return kwargs

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the args, for people and programs that write them in SQL.

        >>> def charge(order_id: int) -> None: ...
        >>> ArgsCodec.of(charge, "charge").schema()["$defs"]["charge"]["required"]
        ['order_id']
        """
        return msgspec.json.schema(self._decoder.type, schema_hook=models.describe)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._by_position):
            allowed = len(self._by_position)
            raise BadArguments(
                f"task {self.task} takes {allowed} arguments by position, got {len(args)}; {self._takes()}"
            )
        bound = dict(zip(self._by_position, args, strict=False))
        if not kwargs:
            return bound
        if twice := bound.keys() & kwargs.keys():
            raise BadArguments(f"task {self.task}: argument {min(twice)} was given by position and by name")
        return bound | kwargs

    def _takes(self) -> str:
        return "it takes " + (", ".join(argument.name for argument in self.arguments) or "no arguments")

    def _explain(self, error: Exception, bound: dict[str, Any]) -> BadArguments:
        """The task, the field, what was expected and what came, from the decoder's words."""
        found = _PLACE.match(_words(error))
        what, place = (found["what"], found["place"]) if found else (_words(error), None)
        if place is None:
            return BadArguments(f"task {self.task}: {_lowered(what)}; {self._takes()}")
        if place in bound:  # the decoder saw JSON; the caller wants to hear of the Python type
            what = _GOT.sub(f"got `{type(bound[place]).__name__}`", what)
        return BadArguments(f"task {self.task}, argument {place}: {_lowered(what)}")


def _words(error: Exception) -> str:
    return str(error)[:1_000] or type(error).__name__


def _lowered(what: str) -> str:
    """The decoder's sentence in our words, and without its capital."""
    what = what.replace("Object missing required field", "missing argument")
    what = what.replace("Object contains unknown field", "unknown argument")
    return what[:1].lower() + what[1:]
