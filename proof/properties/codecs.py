"""Args: what a handler gets in the worker is what the caller gave, after JSON and after PostgreSQL."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final
from uuid import UUID

from hypothesis import strategies as st

from faultline.args import ArgsCodec, encode_result
from faultline.job import NewJob
from faultline.store import calls
from proof.properties.asking import asked
from proof.properties.ground import PropertyDatabase


class Colour(Enum):
    """Something with a closed set of values."""

    RED = "red"
    BLUE = "blue"


def handler(
    number: int,
    text: str,
    at: datetime,
    wait: timedelta,
    id: UUID,
    price: Decimal,
    colour: Colour,
    raw: bytes,
    parts: list[dict[str, int | None]],
    share: float = 0.5,
    anything: Any = None,
) -> None: ...


CODEC: Final = ArgsCodec.of(handler, "handler")

# What a JSON text in PostgreSQL can hold: no NUL, no half of a surrogate pair.
some_text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
some_number = st.one_of(st.integers(2**53, 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(-9, 9))
some_json = st.recursive(
    st.one_of(st.none(), st.booleans(), some_number, some_text),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(some_text, inner, max_size=3)),
    max_leaves=8,
)

some_args = st.fixed_dictionaries(
    {
        "number": some_number,
        "text": some_text,
        "at": st.datetimes(datetime(1900, 1, 1), datetime(2199, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
        "wait": st.timedeltas(timedelta(0), timedelta(days=1000)),
        "id": st.uuids(),
        "price": st.decimals(-(10**9), 10**9, allow_nan=False, places=4),
        "colour": st.sampled_from(Colour),
        "raw": st.binary(max_size=20),
        "parts": st.lists(st.dictionaries(some_text, st.none() | some_number, max_size=2), max_size=2),
    },
    optional={"share": st.floats(-1e308, 1e308), "anything": some_json},
)


@asked(args=some_args)
def args_come_back_from_json(args: dict[str, Any]) -> None:
    assert CODEC.decode(CODEC.encode((), args)) == args


@asked(value=some_json)
def a_result_is_json_that_says_the_same(value: Any) -> None:
    assert json.loads(encode_result(value)) == value


@asked(on_database=True, args=some_args)
def args_come_back_from_postgresql(ground: PropertyDatabase, args: dict[str, Any]) -> None:
    """Through jsonb and out of a claim, as a worker gets it."""
    ground.conn.execute("delete from faultline.active")  # what this and other properties left behind
    job_id = ground.run(calls.enqueue(NewJob(task="handler", args=CODEC.encode((), args), max_attempts=1)))
    (row,) = ground.run(calls.claim(["default"], 1, lease=timedelta(seconds=15), claim=UUID(int=1)))

    assert row.id == job_id
    assert CODEC.decode(row.args) == args


PROPERTIES: Final = (
    args_come_back_from_json,
    a_result_is_json_that_says_the_same,
    args_come_back_from_postgresql,
)
