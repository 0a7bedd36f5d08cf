"""What Faultline must reach beside its peers, and whether it did."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.peers.figures import (
    BULK,
    COMMIT50,
    COMMIT99,
    DRAIN1,
    DRAIN2,
    OURS,
    OURS_LEAN,
    PICKUP50,
    PICKUP99,
    SINGLE,
    WAL,
    Measure,
    Run,
    Spread,
)

BEST = "the best peer"
BEST_ON_POSTGRES = "the best PostgreSQL peer"


@dataclass(frozen=True, slots=True)
class Must:
    """Reach `bound` times a peer's figure, or stay under it where less is better."""

    measure: Measure
    system: str
    peer: str
    bound: float

    def base(self, run: Run) -> str | None:
        """The peer it is held against in this run, if it was there."""
        match self.peer:
            case "the best peer":
                return run.best_peer(self.measure)
            case "the best PostgreSQL peer":
                return run.best_peer(self.measure, backend="postgres")
            case named:
                return named if run.spread(named, self.measure) else None

    def met(self, ratio: Spread) -> bool:
        return ratio.middle >= self.bound if self.measure.more_is_better else ratio.middle <= self.bound

    def words(self) -> str:
        """
        >>> Must(DRAIN1, OURS, "graphile-worker", 2).words()
        'at least 2 × graphile-worker'
        """
        how = "at least" if self.measure.more_is_better else "at most"
        return f"{how} {self.bound:g} × {self.peer}"


MUSTS = (
    Must(DRAIN1, OURS, "graphile-worker", 2),
    Must(DRAIN1, OURS, "pgqueuer", 5),
    Must(DRAIN1, OURS, "awa", 9),
    Must(DRAIN1, OURS_LEAN, "graphile-worker", 2.3),
    Must(DRAIN2, OURS, "graphile-worker", 1.8),
    Must(BULK, OURS, "pg-boss", 2),
    Must(SINGLE, OURS, BEST_ON_POSTGRES, 1),
    Must(PICKUP50, OURS, BEST, 1),
    Must(PICKUP99, OURS, BEST, 1),
    Must(COMMIT50, OURS, BEST, 1),
    Must(COMMIT99, OURS, BEST, 1),
    Must(WAL, OURS_LEAN, "graphile-worker", 1.2),
    Must(WAL, OURS, "graphile-worker", 1.8),
)


def table(run: Run, goals: Sequence[Must] = MUSTS) -> list[str]:
    """Each must with the measured figures, the ratio, and met or not met."""
    lines = [
        "| | goal | measured | beside | ratio (single repeats) | |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return lines + [_line(must, run) for must in goals]


def _line(must: Must, run: Run) -> str:
    measure = must.measure
    what = f"{measure.title}, {must.system}"
    base = must.base(run)
    ours = run.spread(must.system, measure)
    theirs = run.spread(base, measure) if base else None
    ratio = run.ratio(measure, must.system, base) if base else None
    if not (base and ours and theirs and ratio):
        return f"| {what} | {must.words()} | not measured in this run | | | |"
    verdict = "met" if must.met(ratio) else "**not met**"
    beside = f"{base} {theirs.middle:{measure.form}}"
    measured = f"{ours.middle:{measure.form}} {measure.unit}"
    return f"| {what} | {must.words()} | {measured} | {beside} | {ratio.show('.2f')} | {verdict} |"
