"""A drill's results: its runs, or why it was not possible; and the same as a JSON document."""

import platform
from dataclasses import dataclass
from typing import Any, Literal

import psycopg

import faultline
from faultline.lab.drills.registry import Drill
from faultline.lab.drills.view.drill_verdict import DrillVerdict
from faultline.lab.drills.view.timeline import Timeline
from faultline.lab.drills.view.trace import Trace

Word = Literal["kept", "BROKEN", "VOID", "skipped"]


@dataclass(frozen=True, slots=True)
class RehearsedRun:
    """One run of a drill, and what the database says of it."""

    verdict: DrillVerdict
    timelines: tuple[tuple[str, Timeline], ...]
    trace: Trace
    seconds: float


@dataclass(frozen=True, slots=True)
class DrillResult:
    """A drill and its runs; without any, `skipped` says why."""

    drill: Drill
    runs: tuple[RehearsedRun, ...] = ()
    skipped: str = ""

    @property
    def told(self) -> RehearsedRun:
        """The run worth telling: the first that was not kept, or else the last."""
        return next((run for run in self.runs if not run.verdict.kept), self.runs[-1])

    @property
    def word(self) -> Word:
        return self.told.verdict.word if self.runs else "skipped"

    @property
    def passed(self) -> bool:
        """True when nothing failed. A skipped drill is no failure; it is no success either."""
        return self.word in ("kept", "skipped")

    @property
    def seconds(self) -> float:
        return sum(run.seconds for run in self.runs)


@dataclass(frozen=True, slots=True)
class Versions:
    """What the drills were run with."""

    faultline: str
    postgresql: str
    python: str
    driver: str
    place: str

    @classmethod
    def of(cls, conn: psycopg.Connection[Any], place: str) -> "Versions":
        (server,) = conn.execute("show server_version").fetchone() or ("",)
        return cls(faultline.__version__, server, platform.python_version(), psycopg.__version__, place)


def document(results: list[DrillResult], versions: Versions) -> dict[str, Any]:
    """All of it for programs; tokens as strings, because JavaScript loses integers over 2^53."""
    return {
        "kept": all(result.passed for result in results) and any(result.runs for result in results),
        "versions": {name: getattr(versions, name) for name in versions.__slots__},
        "drills": [_drill(result) for result in results],
    }


def _drill(result: DrillResult) -> dict[str, Any]:
    about = {"name": result.drill.name, "summary": result.drill.summary, "verdict": result.word.lower()}
    if not result.runs:
        return {**about, "skipped": result.skipped}
    verdict = result.told.verdict
    return {
        **about,
        "runs": len(result.runs),
        "runs_kept": sum(run.verdict.kept for run in result.runs),
        "seconds": round(result.seconds, 3),
        "promises": [
            {"promise": one.promise, "kept": one.kept, "evidence": one.evidence} for one in verdict.findings
        ],
        "counts": dict(verdict.counts),
        "unseen": list(verdict.unseen),
        "timelines": [_timeline(title, timeline) for title, timeline in result.told.timelines],
    }


def _timeline(title: str, timeline: Timeline) -> dict[str, Any]:
    moments = [
        {
            "at": moment.at.isoformat(),
            "who": moment.who,
            "what": moment.what,
            "token": None if moment.token is None else str(moment.token),
            "words": moment.words,
        }
        for moment in timeline.moments
    ]
    return {"title": title, "moments": moments}
