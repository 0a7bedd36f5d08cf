"""What JSON in PostgreSQL cannot hold is refused before any SQL, with the field's name (I2 to I5, I10)."""

import json
from decimal import Decimal
from typing import Any

import pytest

from faultline.args import BYTES_MAX, DEPTH_MAX, ArgsCodec, encode_result
from faultline.errors import BadDocument


def send(note: Any, extra: Any = None) -> None: ...


CODEC = ArgsCodec.of(send, "send")
NAN, INFINITY = float("nan"), float("inf")


def nested(levels):
    """A document of this many levels: lists around a scalar."""
    value: Any = 1
    for _ in range(levels - 1):
        value = [value]
    return value


I2 = [
    ({"note": NAN}, "note is nan"),
    ({"note": {"a": [1, INFINITY]}}, r"note\.a\[1\] is inf"),
    ({"note": -INFINITY}, "note is -inf"),
    ({"note": None, "extra": [None, NAN]}, r"extra\[1\] is nan"),
    ({"note": None, "extra": NAN}, "extra is nan"),
    ({"note": "a\0b"}, "note contains a NUL"),
    ({"note": {"k\0": 1}}, "a key in note contains a NUL"),
    ({"note": "\ud800"}, "note contains a lone surrogate"),
    ({"note": [{"x": "ok"}, {"x": "\udfff"}]}, r"note\[1\]\.x contains a lone surrogate"),
    ({"note": {"\udc00": 1}}, "a key in note contains a lone surrogate"),
]


@pytest.mark.parametrize(("call", "message"), I2, ids=[case[1] for case in I2])
def test_i2_what_postgresql_text_and_json_cannot_hold_is_refused_by_field(call, message):
    with pytest.raises(BadDocument, match=f"^args of task send: {message}.*\\. "):
        CODEC.encode((), call)


@pytest.mark.parametrize(
    "note", ["\\u0000", "null", None, "\\\\u0000", {"null": "NaN"}, "\x1b\x7f\n"], ids=ascii
)
def test_i2_what_only_looks_suspicious_is_let_through(note):
    assert CODEC.decode(CODEC.encode((note,), {})) == {"note": note}


def test_i3_numbers_that_grow_when_printed_are_measured_as_printed():
    with pytest.raises(BadDocument, match="bytes of JSON"):
        CODEC.encode(([1e308] * 3_500,), {})

    assert CODEC.encode(([1e308] * 3_300,), {})


BEYOND = {
    "over": 10**308 + 1, "under": -(10**308) - 1, "far": 10**5_000, "float": 1.0000000000000002e308,
    "negative float": -1.5e308,
}  # fmt: skip


@pytest.mark.parametrize("number", BEYOND.values(), ids=list(BEYOND))
@pytest.mark.parametrize("wrap", [lambda n: n, lambda n: {"a": [n]}], ids=["bare", "inside"])
def test_i3_numbers_beyond_1e308_are_refused(number, wrap):
    with pytest.raises(BadDocument, match=r"note.* is a number beyond 1e308"):
        CODEC.encode((wrap(number),), {})


def test_i3_the_largest_number_is_allowed():
    assert CODEC.decode(CODEC.encode((10**308, 1e308), {})) == {"note": 10**308, "extra": 1e308}


# PostgreSQL prints `{"note": "..."}`: twelve bytes around the text.
AROUND = len('{"note": ""}')


@pytest.mark.parametrize("size", [BYTES_MAX - 1, BYTES_MAX])
def test_i4_a_document_of_one_mebibyte_is_allowed(size):
    text = CODEC.encode(("x" * (size - AROUND),), {})

    assert len(json.dumps(json.loads(text))) == size


@pytest.mark.parametrize("size", [BYTES_MAX + 1, 64 * BYTES_MAX])
def test_i4_a_document_over_one_mebibyte_is_refused(size):
    with pytest.raises(BadDocument, match=r"bytes of JSON, and 1,048,576 are allowed\. Store it elsewhere"):
        CODEC.encode(("x" * (size - AROUND),), {})


def test_i4_the_spaces_postgresql_prints_are_counted():
    numbers = [1] * (BYTES_MAX // 3)  # `1,` here, `1, ` there

    with pytest.raises(BadDocument, match="bytes of JSON"):
        CODEC.encode((numbers,), {})
    assert CODEC.encode((numbers[:-4],), {})


def test_commas_and_colons_inside_text_are_not_counted_as_spaces():
    assert CODEC.encode((',:"\\' * (BYTES_MAX // 6 - 20),), {})


def test_depth_is_counted_to_64_levels():
    assert CODEC.encode((nested(DEPTH_MAX - 1),), {})  # the args themselves are the outermost level

    with pytest.raises(BadDocument, match="lies deeper than 64 levels"):
        CODEC.encode((nested(DEPTH_MAX),), {})


def test_many_brackets_beside_each_other_are_not_depth():
    assert CODEC.encode(([[]] * 1_000,), {})


def cyclic():
    loop: list[Any] = []
    loop.append(loop)
    return loop


class Rude:
    __slots__ = ()


I10 = [
    (cyclic(), "cyclic or nested"),
    (nested(5_000), "nested deeper than 64"),
    (object(), "an object has no JSON form"),
    ({"a": Rude()}, "a: a Rude has no JSON form"),
    (lambda: None, "a function has no JSON form"),
    ({(1, 2): 3}, "[Kk]eys|tuple"),
    (1j, "complex"),
    ("x" * (BYTES_MAX + 1), "bytes of JSON"),
    (NAN, "the value is nan"),
]


@pytest.mark.parametrize(("value", "message"), I10, ids=[case[1] for case in I10])
def test_i10_a_result_that_cannot_be_kept_is_refused_by_name(value, message):
    with pytest.raises(BadDocument, match=f"^result of task send: .*{message}"):
        encode_result(value, task="send")


def test_an_argument_without_a_json_form_is_named():
    with pytest.raises(BadDocument, match=r"^args of task send: note: a Rude has no JSON form"):
        CODEC.encode((Rude(),), {})


@pytest.mark.parametrize("value", [None, 0, "", [], {"a": Decimal("1.10")}, True])
def test_an_ordinary_result_is_kept(value):
    assert json.loads(encode_result(value)) == json.loads(json.dumps(value, default=str))
