"""One scenario from its first process to its verdict."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg

from proof.ha.facts import HaFacts, read_acks, read_log, read_notes, read_rows
from proof.ha.faults import KEEPS, LOSES, VOID, FaultStep
from proof.ha.ground import HaDatabase
from proof.ha.judge import Judgement, judge
from proof.ha.load import Load, under_load
from proof.ha.processes import TookTooLong, wait_for
from proof.ha.programs import Programs
from proof.ha.scenarios import HaScenario
from proof.ha.watch import PrimaryWatch, Promotion, promotions

WARM_SECONDS: Final = 10.0
AFTER_SECONDS: Final = 8.0
DRAIN_SECONDS_MAX: Final = 90.0
OPEN: Final = "select (select count(*) from faultline.active) + (select count(*) from faultline.later)"
Tell = Callable[[str], None]


@dataclass
class Played:
    """What one scenario came to."""

    scenario: HaScenario
    folder: Path
    judgement: Judgement
    facts: HaFacts
    steps: list[tuple[float, str]] = field(default_factory=list)
    promotions: list[Promotion] = field(default_factory=list)
    recovered: str = ""
    seconds: float = 0.0


@dataclass
class _Course:
    """What happens during a run, as it happens."""

    began: float = 0.0
    steps: list[tuple[float, FaultStep]] = field(default_factory=list)
    recovered: str = ""
    drained: bool = False

    def marked(self, mark: str) -> list[tuple[float, str]]:
        return [(t, step.what) for t, step in self.steps if step.mark == mark]

    @property
    def lossy(self) -> tuple[float, float] | None:
        begins, ends = self.marked(LOSES), self.marked(KEEPS)
        return (begins[0][0], ends[-1][0] if ends else time.time()) if begins else None


def play(
    scenario: HaScenario, ground: HaDatabase, programs: Programs, runs: Path, tell: Tell, *, server: bool
) -> Played:
    started = time.monotonic()
    folder = runs / f"{scenario.name}-{time.strftime('%H%M%S')}"
    folder.mkdir(parents=True)
    load = Load(folder, programs, ground, int(time.time() * 10) * 100_000)
    course, watch = _Course(), PrimaryWatch(ground.watched)
    try:
        with under_load(load, server=server):
            _run(scenario, ground, load, course, tell)
    finally:
        watch.stop()
    tell("judging")
    changes = promotions(watch.moments, course.began)
    facts = _facts(load, course, changes)
    played = Played(scenario, folder, judge(facts, scenario.expected), facts, promotions=changes)
    played.steps = [(round(t - course.began, 1), step.what) for t, step in course.steps]
    played.recovered, played.seconds = course.recovered, time.monotonic() - started
    return played


def _run(scenario: HaScenario, ground: HaDatabase, load: Load, course: _Course, tell: Tell) -> None:
    tell("warming up")
    time.sleep(WARM_SECONDS)
    course.began = time.time()
    for step in _steps(scenario, ground, load):
        course.steps.append((time.time(), step))
        tell(step.what)
    time.sleep(AFTER_SECONDS)
    tell("producers stop, the queue drains")
    load.stop_producers()
    course.recovered = ground.recovered()
    with suppress(TookTooLong):
        course.drained = wait_for(lambda: _is_empty(ground), DRAIN_SECONDS_MAX, "the queue is empty")


def _steps(scenario: HaScenario, ground: HaDatabase, load: Load) -> Iterator[FaultStep]:
    """The fault, step by step; a fault that gives up has not happened."""
    try:
        yield from scenario.fault(ground, load)
    except TookTooLong as error:
        yield FaultStep(str(error), VOID)


def _is_empty(ground: HaDatabase) -> bool:
    with suppress(psycopg.Error), ground.admin() as conn:
        return bool(conn.execute(OPEN.encode()).fetchone() == (0,))
    return False


def _facts(load: Load, course: _Course, changes: list[Promotion]) -> HaFacts:
    ground, acks = load.ground, read_acks(load.acks)
    with ground.admin() as conn:
        rows = read_rows(conn, load.first, course.began)
    kept = load.folder / "ids.jsonl"
    kept.write_text("".join(json.dumps({"id": ack.id, "at": ack.t}) + "\n" for ack in acks if ack.id))
    processes = [*load.workers, *load.servers]
    logs = {name: read_log((load.folder / f"{name}.log").read_text(errors="replace")) for name in processes}
    code, said = ground.faultline("audit", "--effects", "effects")
    (load.folder / "audit.txt").write_text(said)
    return HaFacts(
        began=course.began, promotions=[change.t for change in changes],
        timelines=[change.history.timeline for change in changes], acks=acks,
        notes=read_notes(load.notes), rows=rows, logs=logs, exits=load.exits,
        workers=load.workers, producers=load.producers,
        pinned=[name for name, way in ground.workers.items() if way.pinned], lossy=course.lossy,
        void=[what for _, what in course.marked(VOID)], drained=course.drained,
        audit=code, audit_lost=_audit_lost(ground, kept, load.folder),
    )  # fmt: skip


def _audit_lost(ground: HaDatabase, kept: Path, folder: Path) -> int | None:
    """How many of the acknowledged ids the audit finds nowhere; None where it could not look."""
    _, said = ground.faultline("audit", "--ids", str(kept), "--json")
    (folder / "audit-ids.json").write_text(said)
    with suppress(ValueError):
        verdicts: list[dict[str, Any]] = json.loads(said)["verdicts"]
        return next(int(verdict["found"]) for verdict in verdicts if verdict["name"] == "NothingLost")
    return None
