"""What came of drills is told in a page and in a document that need nothing but themselves."""

import json
import re
import subprocess
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from xml.etree import ElementTree

import pytest

from faultline.lab.drills.drill_results import DrillResult, RehearsedRun, Versions, document
from faultline.lab.drills.html_report import page
from faultline.lab.drills.registry import DRILLS
from faultline.lab.drills.view.drill_verdict import DrillVerdict, PromiseFinding
from faultline.lab.drills.view.story import StoryMoment
from faultline.lab.drills.view.timeline import Timeline
from faultline.lab.drills.view.timeline_svg import draw
from faultline.lab.drills.view.trace import Trace
from scripts import tools

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVIL = "</script><script>alert(1)</script>"
VERSIONS = Versions("0.1.0", "18.1", "3.11.7", "3.3", "on an embedded server")
MOMENTS = [
    StoryMoment(NOON + timedelta(seconds=at), who, what, token, note)
    for at, who, what, token, note in (
        (0, "A", "claimed", 1, None), (0.1, "A", "stalled", None, EVIL), (1, "A", "lease_ends", None, None),
        (1.2, "A", "expired", 1, None), (1.3, "B", "claimed", 2**40 + 7, None),
        (1.4, "A", "refused", 1, "token_mismatch/2"), (2, "B", "succeeded", 2**40 + 7, None),
    )
]  # fmt: skip


def result(*findings, counts=None, must_see=()):
    verdict = DrillVerdict(findings).counted(counts or {}, must_see)
    return DrillResult(
        DRILLS["lease-race"], (RehearsedRun(verdict, (("", Timeline(MOMENTS)),), Trace(), 1.5),)
    )


KEPT = PromiseFinding("the job ended once", True, "1 success")
BROKEN = PromiseFinding("its work was committed once", False, EVIL)


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (result(KEPT, counts={"refused": 1}, must_see=["refused"]), "kept"),
        (result(KEPT, counts={"refused": 0}, must_see=["refused"]), "VOID"),
        (result(KEPT, BROKEN, must_see=["refused"]), "BROKEN"),
        (result(), "BROKEN"),
        (DrillResult(DRILLS["failover"], skipped="it needs a server of its own"), "skipped"),
    ],
)
def test_a_drill_in_which_nothing_happened_is_void_and_only_a_kept_one_is_kept(one, word):
    assert one.word == word
    assert one.passed is (word in ("kept", "skipped"))


def test_the_page_runs_nothing_and_fetches_nothing():
    html = page([result(KEPT, BROKEN), DrillResult(DRILLS["failover"], skipped="why")], VERSIONS)

    assert "<script" not in html
    assert not re.search(r'(?:src|href)="(?!#)', html)
    assert "url(" not in html
    assert " style=" not in html
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.S)
    hashed = b64encode(sha256(style.encode()).digest()).decode()
    assert f"content=\"default-src 'none'; style-src 'sha256-{hashed}'\"" in html
    assert "PostgreSQL 18.1" in html


def opened(html, tmp_path):
    """The page as a browser has it once it is loaded, and what the browser complained of."""
    program = tools.find("chromium")
    if program is None:
        pytest.skip(tools.why_not("chromium"))
    file = tmp_path / "drills.html"
    file.write_text(html)
    offline = ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"]
    words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--dump-dom",
             "--enable-logging=stderr", f"--user-data-dir={tmp_path}/browser", *offline]  # fmt: skip
    done = subprocess.run([program, *words, file.as_uri()], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_a_browser_shows_the_page_under_its_own_policy_without_complaint(tmp_path):
    """The policy names the style sheet by a hash that a browser computes anew."""
    html = page([result(KEPT, BROKEN)], VERSIONS)

    shown, complaints = opened(html, tmp_path)
    _, of_another = opened(html.replace("color: #1e293b", "color: #1e293c"), tmp_path)

    assert complaints == []
    assert "Content Security Policy" in of_another[0]  # it would have said so
    assert {"token 1", "refused", "stalled"} <= set(re.findall(r"<text[^>]*>([^<]*)</text>", shown))
    assert "<script" not in shown


def test_the_picture_is_one_of_its_own_and_shows_each_worker():
    svg = draw(MOMENTS, EVIL)

    root = ElementTree.fromstring(svg)
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"A", "B", "token 1", "refused", "committed", "stalled"} <= set(words)


def test_the_document_is_one_that_programs_can_read():
    told = json.loads(json.dumps(document([result(KEPT, counts={"refused": 1}), result(BROKEN)], VERSIONS)))

    assert told["kept"] is False
    assert [drill["verdict"] for drill in told["drills"]] == ["kept", "broken"]
    assert told["drills"][0]["counts"] == {"refused": 1}
    assert told["drills"][0]["timelines"][0]["moments"][4]["token"] == str(2**40 + 7)
    assert told["versions"]["postgresql"] == "18.1"


def test_nothing_but_skipped_drills_is_not_a_success():
    assert document([DrillResult(DRILLS["failover"], skipped="why")], VERSIONS)["kept"] is False
