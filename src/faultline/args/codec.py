"""Arguments to JSON and back, for one task."""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from faultline.args import model_hooks
from faultline.args.document import encode_document
from faultline.args.signature import Argument, arguments_of, parameters_of, struct_of, zoned
from faultline.bounds import counted
from faultline.errors import BadArguments

_PLACE: Final = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<place>.*)`)?$", re.DOTALL)
_GOT: Final = re.compile(r"got `\w+`$")
_ZONE: Final = "; give it one, such as datetime.now(UTC): without, it is another moment on another machine"


class ArgsCodec:
    """Check a call against the handler's signature and keep it as JSON; read it back in the worker.

    Encoding reads its own JSON back with a worker's decoder, so that every enqueued job can be run.

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
        self._texts = tuple(argument.name for argument in arguments if argument.is_text)
        # A caller always has to use the right names, and moments with a time zone; only a worker may ignore
        # unknown names of a newer caller, and has to accept the moments of an older one.
        strict = struct_of(map(zoned, arguments), task, forbid_unknown=True)
        self._strict = msgspec.json.Decoder(strict, dec_hook=model_hooks.load)
        self._decoder = self._strict
        if not forbid_unknown or any(argument.is_moment for argument in arguments):
            lenient = struct_of(arguments, task, forbid_unknown=forbid_unknown)
            self._decoder = msgspec.json.Decoder(lenient, dec_hook=model_hooks.load)

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
        for name in self._texts:
            value = bound.get(name)
            if type(value) is not str and value is not None and not isinstance(value, str):
                raise self._no_text(name, value)
        return data.decode()

    def decode(self, text: str | bytes) -> dict[str, Any]:
        """The keyword arguments in a job's args, with the types of the signature."""
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
        return msgspec.json.schema(self._decoder.type, schema_hook=model_hooks.describe)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) > len(self._by_position):
            allowed = len(self._by_position)
            raise BadArguments(
                f"task {self.task} takes {counted(allowed, 'argument')} by position, got {len(args)}; "
                f"{self._takes()}"
            )
        bound = dict(zip(self._by_position, args, strict=False))
        if not kwargs:
            return bound
        if twice := bound.keys() & kwargs.keys():
            raise BadArguments(f"task {self.task}: argument {min(twice)} was given by position and by name")
        return bound | kwargs

    def _takes(self) -> str:
        return "it takes " + (", ".join(argument.name for argument in self.arguments) or "no arguments")

    def _no_text(self, name: str, value: object) -> BadArguments:
        """Refuse a type that is text in JSON, as bytes, UUIDs and moments are: the handler would get text."""
        return BadArguments(
            f"task {self.task}, argument {name}: expected `str`, got `{type(value).__name__}`. Make text of "
            "it, or annotate the parameter with its type"
        )

    def _explain(self, error: Exception, bound: dict[str, Any]) -> BadArguments:
        """The task, the field, the expected and the given type, from the decoder's text."""
        found = _PLACE.match(_words(error))
        what, place = (found["what"], found["place"]) if found else (_words(error), None)
        if place is None:
            return BadArguments(f"task {self.task}: {_lowered(what)}; {self._takes()}")
        if place in bound:  # the decoder saw JSON; the caller needs the Python type
            what = _GOT.sub(f"got `{type(bound[place]).__name__}`", what)
        how = _ZONE if what.endswith("with a timezone component") else ""
        return BadArguments(f"task {self.task}, argument {place}: {_lowered(what)}{how}")


def _words(error: Exception) -> str:
    return str(error)[:1_000] or type(error).__name__


def _lowered(what: str) -> str:
    """The decoder's sentence in our words, in lower case."""
    what = what.replace("Object missing required field", "missing argument")
    what = what.replace("Object contains unknown field", "unknown argument")
    return what[:1].lower() + what[1:]
