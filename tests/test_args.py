"""The signature is the schema: a wrong argument fails where the mistake is."""

import enum
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest

from faultline.args import ArgsCodec
from faultline.errors import BadArguments, ConfigError


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Line:
    sku: str
    price: Decimal


class Address(TypedDict):
    street: str


class Box(msgspec.Struct):
    width: int


class Point(NamedTuple):
    x: int
    y: int


def order(
    order_id: int,
    lines: list[Line],
    at: datetime,
    ref: UUID,
    total: Decimal,
    colour: Colour,
    address: Address,
    box: Box | None = None,
    *,
    note: str = "",
) -> None: ...


CODEC = ArgsCodec.of(order, "order")
CALL = {
    "order_id": 2**53 + 1,
    "lines": [Line("a", Decimal("1.10"))],
    "at": datetime(2026, 1, 1, 12, tzinfo=UTC),
    "ref": UUID(int=7),
    "total": Decimal("0.1000000000000000055511151231257827"),
    "colour": Colour.RED,
    "address": {"street": "Unter den Linden"},
}


def codec_for(hint, **options):
    def task(value): ...

    task.__annotations__ = {"value": hint}
    return ArgsCodec.of(task, "task", **options)


def test_a_call_comes_back_as_it_was():
    assert CODEC.decode(CODEC.encode((), CALL)) == CALL


def test_arguments_may_be_given_by_position():
    assert CODEC.encode(tuple(CALL.values()), {"note": "x"}) == CODEC.encode((), {**CALL, "note": "x"})


def test_what_was_left_out_is_left_to_the_handlers_default():
    assert "note" not in CODEC.encode((), CALL)
    assert CODEC.decode(CODEC.encode((), {**CALL, "box": Box(3)}))["box"] == Box(3)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, 2**53 + 1), (int, -(10**300)), (float, 1.0), (float, 1e300), (Decimal, Decimal("1.10")),
        (bytes, b"\x00\xff"), (date, date(2026, 1, 1)), (timedelta, timedelta(seconds=90.5)),
        (set[int], {3, 1, 2}), (tuple[int, str], (1, "a")), (dict[int, str], {1: "a"}), (Point, Point(1, 2)),
        (Literal["a", "b"], "b"), (str | None, None), (Any, {"a": [1, 1.0, None, True]}),
        (str, "naïve 😀 \u2028"), (list[Line], []),
    ],
    ids=str,
)  # fmt: skip
def test_a_value_round_trips_with_its_type(hint, value):
    codec = codec_for(hint)

    decoded = codec.decode(codec.encode((value,), {}))["value"]

    assert decoded == value
    assert type(decoded) is type(value)


def test_i5_one_and_one_point_zero_stay_what_they_are():
    codec = codec_for(Any)

    assert codec.encode((1,), {}) == '{"value":1}'
    assert codec.encode((1.0,), {}) == '{"value":1.0}'
    assert type(codec.decode('{"value":1.0}')["value"]) is float


def test_i5_the_last_of_two_equal_keys_counts_as_in_postgresql():
    assert codec_for(Any).decode('{"value":1,"value":2}') == {"value": 2}


def test_a_float_that_postgresql_printed_in_full_is_still_a_float():
    assert codec_for(float).decode('{"value": 1' + "0" * 300 + "}") == {"value": 1e300}


def test_the_same_set_is_the_same_text_in_every_process():
    words = {f"word{n}" for n in range(50)}

    assert codec_for(set[str]).encode((words,), {}) == codec_for(list[str]).encode((sorted(words),), {})


WRONG = [
    ((), {}, "missing argument `order_id`"),
    ((), {**CALL, "order_id": "7"}, "argument order_id: expected `int`, got `str`"),
    ((), {**CALL, "order_id": True}, "argument order_id: expected `int`, got `bool`"),
    ((), {**CALL, "order_id": None}, "argument order_id: expected `int`, got `NoneType`"),
    ((), {**CALL, "order_id": datetime(2026, 1, 1, tzinfo=UTC)}, "expected `int`, got `datetime`"),
    ((), {**CALL, "lines": [{"sku": "a", "price": "x"}]}, r"argument lines\[0\]\.price: invalid decimal"),
    ((), {**CALL, "lines": [{"sku": 5}]}, r"argument lines\[0\]\.sku: expected `str`, got `int`"),
    ((), {**CALL, "colour": "blue"}, "argument colour: invalid enum value 'blue'"),
    ((), {**CALL, "address": {}}, "argument address: missing argument `street`"),
    ((), {**CALL, "ordr_id": 7}, "unknown argument `ordr_id`; it takes order_id, lines"),
    ((7,), CALL, "argument order_id was given by position and by name"),
    ((*CALL.values(), None, "x"), {}, "takes 8 arguments by position, got 9"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "kwargs", "message"), WRONG, ids=[wrong[2] for wrong in WRONG])
def test_a_wrong_call_is_refused_with_task_field_expected_and_got(args, kwargs, message):
    with pytest.raises(BadArguments, match=f"^task order.*{message}"):
        CODEC.encode(args, kwargs)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        '{"order_id":"7"}',
        '{"order_id":1}x',
        "[" * 5000,
        "9" * 5000,
        b"\xff",
        '{"\\ud800":1}',
    ],
)
def test_args_that_fit_no_call_are_refused_by_name_in_the_worker(text):
    with pytest.raises(BadArguments, match=r"^task order"):
        CODEC.decode(text)


NAIVE = datetime(2026, 1, 1, 12)  # noqa: DTZ001 - that is the point


@pytest.mark.parametrize("hint", [str, str | None, Annotated[str, msgspec.Meta(max_length=99)]], ids=str)
@pytest.mark.parametrize(
    "value",
    [b"\xff\x00abc", UUID(int=7), Decimal("1.10"), NAIVE, date(2026, 1, 1), timedelta(seconds=1), Colour.RED],
    ids=str,
)
def test_what_json_has_as_text_is_no_text_where_text_belongs(hint, value):
    """The handler would be given the text of it, such as base64, and nothing would have said so."""
    with pytest.raises(BadArguments, match=r"^task task, argument value: expected `str`, got `") as refused:
        codec_for(hint).encode((), {"value": value})

    assert f"got `{type(value).__name__}`" in str(refused.value)
    assert "annotate the parameter with its type" in str(refused.value)


def test_text_of_an_enum_of_texts_is_text_and_none_is_the_default_of_what_may_be_none():
    class Word(enum.StrEnum):
        RED = "red"

    assert codec_for(str).encode((Word.RED,), {}) == codec_for(str).encode(("red",), {})

    def greet(name: str = "Ada", title: str | None = None) -> None: ...

    assert ArgsCodec.of(greet, "greet").encode((), {}) == "{}"
    assert ArgsCodec.of(greet, "greet").encode((), {"title": None}) == '{"title":null}'
    with pytest.raises(BadArguments, match="argument name: expected `str`, got `NoneType`"):
        ArgsCodec.of(greet, "greet").encode((), {"name": None})


@pytest.mark.parametrize("hint", [datetime, datetime | None], ids=str)
@pytest.mark.parametrize("value", [NAIVE, "2026-01-01T12:00:00"], ids=str)
def test_a_moment_without_a_time_zone_is_refused_as_run_at_refuses_it(hint, value):
    with pytest.raises(BadArguments, match=r"argument value: .*with a timezone component; .*now\(UTC\)"):
        codec_for(hint).encode((), {"value": value})

    assert (
        codec_for(hint).encode((), {"value": NAIVE.replace(tzinfo=UTC)}) == '{"value":"2026-01-01T12:00:00Z"}'
    )


def test_a_worker_still_takes_a_moment_without_a_time_zone():
    """It may have been enqueued before that was refused, or in SQL."""
    assert codec_for(datetime).decode('{"value":"2026-01-01T12:00:00"}') == {"value": NAIVE}


def test_an_annotation_that_asks_for_a_naive_moment_is_given_one():
    codec = codec_for(Annotated[datetime, msgspec.Meta(tz=False)])

    assert codec.decode(codec.encode((NAIVE,), {})) == {"value": NAIVE}


def test_arguments_of_a_newer_caller_are_refused_unless_the_task_overlooks_them():
    newer = '{"value":1,"colour":"red"}'

    with pytest.raises(BadArguments, match="unknown argument `colour`"):
        codec_for(int).decode(newer)

    assert codec_for(int, forbid_unknown=False).decode(newer) == {"value": 1}


def test_a_caller_is_held_to_the_names_even_when_a_worker_is_not():
    with pytest.raises(BadArguments, match="unknown argument"):
        codec_for(int, forbid_unknown=False).encode((), {"value": 1, "colour": "red"})


def test_bounds_in_the_annotation_are_kept():
    codec = codec_for(Annotated[int, msgspec.Meta(gt=0)])

    with pytest.raises(BadArguments, match="argument value: expected `int` >= 1"):
        codec.encode((0,), {})


def test_a_handler_without_arguments_has_empty_args():
    assert ArgsCodec.of(lambda: None, "nothing").encode((), {}) == "{}"
    assert ArgsCodec.of(lambda: None, "nothing").decode("{}") == {}


def positional_only(x, /): ...
def any_number(*xs): ...
def any_name(**xs): ...


@pytest.mark.parametrize("handler", [positional_only, any_number, any_name])
def test_what_cannot_be_kept_by_name_is_refused_at_the_definition(handler):
    with pytest.raises(ConfigError, match=r"task t: parameter x.*:"):
        ArgsCodec.of(handler, "t")


class Plain: ...


@pytest.mark.parametrize("hint", [Plain, list[Plain], complex, Line | Address, type[int]], ids=str)
def test_a_type_json_has_no_form_for_is_refused_at_the_definition(hint):
    with pytest.raises(ConfigError, match="task task: argument value is annotated"):
        codec_for(hint)


def test_an_annotation_that_cannot_be_resolved_is_refused_at_the_definition():
    with pytest.raises(ConfigError, match=r"'Nowhere' is not defined.*TYPE_CHECKING"):
        codec_for("Nowhere")


def test_annotations_written_as_text_are_resolved():
    def task(when: "datetime", lines: "list[Line]") -> "Nowhere": ...  # type: ignore[name-defined] # noqa: F821

    codec = ArgsCodec.of(task, "task")

    assert codec.decode('{"when":"2026-01-01T00:00:00Z","lines":[]}')["when"].year == 2026


def test_parameters_without_annotations_take_anything():
    codec = ArgsCodec.of(lambda a, b: None, "t")

    assert codec.decode(codec.encode((1, [None]), {})) == {"a": 1, "b": [None]}


@pytest.mark.parametrize("name", ["self", "cls", "items", "_private", "name", "type"])
def test_any_parameter_name_will_do(name):
    scope: dict[str, Any] = {}
    exec(f"def task({name}: int): ...", scope)
    codec = ArgsCodec.of(scope["task"], "task")

    assert codec.decode(codec.encode((), {name: 7})) == {name: 7}


def test_a_parameter_name_that_python_would_mangle_is_refused_at_the_definition():
    def task(__hidden: int): ...

    with pytest.raises(ConfigError, match="task task: "):
        ArgsCodec.of(task, "task")


def test_pydantic_models_work_where_pydantic_is_installed():
    pydantic: Any = pytest.importorskip("pydantic")

    class Customer(pydantic.BaseModel):  # type: ignore[misc]
        model_config = pydantic.ConfigDict(strict=True)
        name: str
        since: date
        tags: frozenset[str] = frozenset()

    codec = codec_for(list[Customer])
    customer = Customer(name="Ada", since=date(2026, 1, 1), tags=frozenset({"a"}))

    text = codec.encode(([customer],), {})

    assert text == '{"value":[{"name":"Ada","since":"2026-01-01","tags":["a"]}]}'
    assert codec.decode(text) == {"value": [customer]}
    with pytest.raises(BadArguments, match=r"argument value\[0\]: .*since"):
        codec.encode(([{"name": "Ada"}],), {})
    assert "since" in str(codec.schema())


def test_pydantic_is_not_imported_by_us():
    script = "import sys, faultline.args, faultline.task; assert 'pydantic' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
