"""The timeline reads on any terminal: eighty columns, no colour, no Unicode; and as a picture."""

import io
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from rich.console import Console

from faultline.lab.drills.view.lanes import spread
from faultline.lab.drills.view.story import StoryMoment
from faultline.lab.drills.view.timeline import Timeline, export_svg

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def moment(seconds, who, what, token=None, note=None):
    return StoryMoment(NOON + timedelta(seconds=seconds), who, what, token, note)


RACE = Timeline(
    [
        moment(0, "A", "claimed", 1),
        moment(0.1, "A", "frozen"),
        moment(1, "A", "lease_ends"),
        moment(1.2, "A", "expired", 1, "lease expired"),
        moment(1.21, "B", "claimed", 2),
        moment(1.4, "A", "continued"),
        moment(1.5, "A", "refused", 1, "token_mismatch/2"),
        moment(2, "B", "succeeded", 2),
    ]
)


class AsciiFile(io.StringIO):
    encoding = "ascii"


def printed(timeline, width=80, file=None, **options):
    file = file or io.StringIO()
    Console(file=file, width=width, **options).print(timeline)
    return file.getvalue()


def test_it_shows_each_holder_with_its_token_and_times():
    text = printed(RACE)

    assert "0.000 s  A  claims the job: token 1" in text
    assert "1.210 s  B  claims the job: token 2" in text
    assert "1.500 s  A  is REFUSED: token 1 (token_mismatch); the job's token is 2" in text


def test_each_worker_has_a_lane_of_its_own():
    lines = printed(RACE).splitlines()

    (lane_a,) = [line for line in lines if line.startswith("A ") and "●" in line]
    (lane_b,) = [line for line in lines if line.startswith("B ") and "●" in line]
    assert lane_a.index("●") < lane_a.index("■") < lane_a.index("╌") < lane_a.index("✗")
    assert lane_a.index("╌") < lane_b.index("●") < lane_b.index("✓")


def test_the_refused_write_is_red():
    coloured = printed(RACE, force_terminal=True, color_system="standard", legacy_windows=False)

    assert "\x1b[1;31mis REFUSED: token 1" in coloured


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    assert max(len(line) for line in printed(RACE, width).splitlines()) <= width


def test_it_can_be_read_where_there_is_only_ascii():
    text = printed(RACE, file=AsciiFile())

    assert text.isascii()
    assert "o" in text
    assert "is REFUSED" in text


def test_a_job_without_a_trace_is_told_as_such():
    assert printed(Timeline([])).strip() == "no trace of the job"


def test_a_job_of_one_moment_can_be_drawn():
    assert "claims the job" in printed(Timeline([moment(0, "A", "claimed", 1)]))


def test_captions_never_touch():
    for places in ([0, 0, 0], [0, 1, 19], [18, 19, 19], [5, 6, 7]):
        starts = spread(places, [5, 5, 5], 20)
        assert starts[0] >= 0
        assert starts[2] + 5 <= 20
        assert all(later - earlier >= 6 for earlier, later in pairwise(starts))


def test_the_picture_needs_nothing_but_itself():
    svg = export_svg(RACE, title="A race")

    ElementTree.fromstring(svg)
    assert "@font-face" not in svg
    assert "url(" not in svg.replace("url(#", "")
    assert "REFUSED" in svg
