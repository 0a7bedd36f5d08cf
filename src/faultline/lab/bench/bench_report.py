"""A report: everything a scenario found, as it is written to JSON and read back."""

import dataclasses
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from faultline.errors import InputError
from faultline.lab.bench.case import CaseResult, CaseRunner, Progress, Row
from faultline.lab.bench.measure.machine import machine
from faultline.lab.bench.measure.sampler import Series
from faultline.lab.bench.scenario import BenchScenario


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchReport:
    """One run of one scenario."""

    scenario: str
    when: str
    machine: dict[str, Any]
    parameters: dict[str, Any]
    seconds: float = 0.0
    rows: list[Row] = field(default_factory=list)
    series: list[Series] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def add(self, found: CaseResult) -> None:
        if found.row:
            self.rows.append(found.row)
        if found.series is not None:
            self.series.append(found.series)
        if found.remark:
            self.remarks.append(found.remark)

    def document(self) -> dict[str, Any]:
        parts = {part.name: getattr(self, part.name) for part in dataclasses.fields(self)}
        return parts | {"series": [series.document() for series in self.series]}

    def write(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = ",\n".join(f"{json.dumps(name)}: {_lines(part)}" for name, part in self.document().items())
        path.write_text(f"{{{parts}}}\n")


def _lines(part: Any) -> str:
    """JSON with a line for each of several: a file that can be looked through."""
    if not isinstance(part, list) or not part:
        return json.dumps(part)
    return "[\n" + ",\n".join(json.dumps(each) for each in part) + "\n]"


def read(path: Path) -> BenchReport:
    """A report that was written before."""
    try:
        document = json.loads(path.read_text())
        series = [Series(**each) for each in document.pop("series")]
        return BenchReport(**document, series=series)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path} is not a report of `faultline bench`: {error}") from error


def run(
    scenario: BenchScenario, size: Any, server: str, told: Progress, every: float | None = None
) -> BenchReport:
    """Run all cases of a scenario, one after the other."""
    began = datetime.now(UTC)
    report = BenchReport(
        scenario=scenario.name, when=began.isoformat(timespec="seconds"), machine=machine(server),
        parameters=dataclasses.asdict(size),
    )  # fmt: skip
    stand = CaseRunner(server, told, scenario.every if every is None else every)
    for found in scenario.cases(stand, size):
        report.add(found)
    return dataclasses.replace(report, seconds=(datetime.now(UTC) - began).total_seconds())
