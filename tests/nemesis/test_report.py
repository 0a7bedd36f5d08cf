"""The report of a run: verdict, page, picture and data from one value."""

import json
from xml.etree import ElementTree

import pytest

from proof.nemesis.arena import Wanted
from proof.nemesis.drawing import rates, timeline
from proof.nemesis.oracle import Finding
from proof.nemesis.outcome import Outcome
from proof.nemesis.report import as_html, write
from proof.nemesis.storm import Struck
from proof.nemesis.watch import Sample


@pytest.fixture
def outcome():
    return Outcome(
        Wanted(7, 3),
        versions={"PostgreSQL": "18"},
        lacks={"clock-step": "no <libfaketime>"},
        phases=[("storm", 0.0, 60.0), ("heal", 60.0, 70.0)],
        struck=[
            Struck("freeze", "processes", 5.0, 9.0, "anna-1 for 4.0 s"),
            Struck("kill", "processes", 6.0, 6.0, "boris-1"),
            Struck("lock", "server", 8.0, 8.1, "server is down", missed=True),
        ],
        samples=[
            Sample(0.0, 0, 0, 0, 0, 0),
            Sample(1.0),
            Sample(2.0, 50, 1, 0, 0, 0),
            Sample(3.0, 60, 1, 0, 0, 2),
        ],
        findings=[Finding("NoZombie", "only the holder committed", True, 110)],
        sometimes={"a lease was reaped": 1},
    )


def test_a_run_is_kept_when_everything_holds_and_everything_happened(outcome):
    assert outcome.verdict == "kept"


def test_a_run_in_which_something_never_happened_is_void(outcome):
    outcome.sometimes["a commit was unknown"] = 0

    assert (outcome.verdict, outcome.never) == ("void", ["a commit was unknown"])


def test_a_violation_is_told_even_if_the_run_would_be_void(outcome):
    outcome.sometimes["a commit was unknown"] = 0
    outcome.findings.append(Finding("OneEffect", "one effect", False, 1, ("job 1: <two>",)))

    assert outcome.verdict == "broken"
    assert "job 1: &lt;two&gt;" in as_html(outcome)


def test_the_picture_is_a_whole_document_with_a_bar_for_each_fault(outcome):
    picture = timeline(outcome.struck, outcome.samples, outcome.phases)

    titles = [
        title.text for title in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}title")
    ]
    assert sum("freeze" in str(title) for title in titles) == 1
    assert any("SIGKILL" in str(title) for title in titles)


def test_throughput_steps_over_the_moments_when_the_server_was_away(outcome):
    assert list(rates(outcome.samples)) == [(0.0, 2.0, 25.0), (2.0, 3.0, 10.0)]


def test_page_picture_and_data_are_written_and_say_how_to_repeat_it(outcome, tmp_path):
    page, picture, data = write(outcome, tmp_path)

    assert "--seed 7 --minutes 3" in page.read_text()
    assert "SKIPPED clock-step: no &lt;libfaketime&gt;" in page.read_text()
    assert picture.read_text().startswith("<svg")
    assert json.loads(data.read_text())["verdict"] == "kept"
