"""Durations are written as people write them."""

from datetime import timedelta

import pytest

from faultline.errors import InputError, OutOfBounds
from faultline.text.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25), ("90s", 90), ("1h30m", 5400), ("2d", 172800), ("1w", 604800), ("0s", 0),
        ("1.5h", 5400), (" 5m ", 300), ("7us", 0.000007), ("PT1H30M", 5400), ("P1DT2H", 93600),
        ("P2W", 1209600), ("PT0.25S", 0.25), ("pt5m", 300), ("PT0,5S", 0.5),
    ],
)  # fmt: skip
def test_a_duration_is_read(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "90",
        "s",
        "-5s",
        "5 s",
        "1h 30m",
        "5x",
        "P",
        "PT",
        "P1H",
        "1h30",
        "٣s",
        "PT1M1H",
        "1s" * 99,
        "1s\n2s",
    ],
)
def test_what_is_no_duration_is_refused_with_an_example(text):
    with pytest.raises(InputError, match="such as 250ms"):
        parse_duration(text)


def test_a_duration_too_long_to_count_is_refused():
    with pytest.raises(OutOfBounds, match="longer than"):
        parse_duration("9" * 40 + "w")


@pytest.mark.parametrize("text", ["250ms", "1m30s", "1h30m", "2d", "0s", "1d1h1m1s1ms1us"])
def test_a_duration_written_is_read_back_the_same(text):
    assert format_duration(parse_duration(text)) == text


def test_a_negative_duration_is_shown_as_one():
    assert format_duration(timedelta(seconds=-90)) == "-1m30s"
