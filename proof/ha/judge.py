"""The judge: plain values in, findings out. A fault that did not happen makes a run void."""

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from proof.ha.facts import Ack, HaFacts, LogLine, Note

Happened = TypeVar("Happened", Ack, Note)

MULTI_SECONDS_MAX: Final = 8.0
"""From a promotion until a worker with several hosts in its DSN commits again."""

WAY_SECONDS_MAX: Final = 15.0
"""The same through a proxy or a server: one lease."""

CALL_SECONDS_MAX: Final = 15.0
"""A call of a producer is answered, or refused by name."""

SETTLED_SECONDS: Final = 5.0
"""Starts closer than this may be seen in either order: a claimed job waits for its turn in a worker."""

LOSS_SLACK_SECONDS: Final = 2.0
NOISE_SECONDS: Final = 5.0
NOISE_LINES_MAX: Final = 2.0
"""Loud lines of one process for each five seconds of an outage, on average."""


@dataclass(frozen=True)
class Expected:
    """What a scenario must bring about, and what it may cost."""

    promotions: int = 1
    may_lose: bool = False
    must_lose: bool = False
    one_timeline: bool = False
    """Whether the promotions must have taken one timeline number."""


class HaFinding(NamedTuple):
    name: str
    found: object
    kept: bool
    examples: tuple[object, ...] = ()


class Judgement(NamedTuple):
    findings: tuple[HaFinding, ...]
    void: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """`broken` if anything is, `void` if the fault did not happen, else `kept`."""
        if any(not finding.kept for finding in self.findings):
            return "broken"
        return "void" if self.void else "kept"


def judge(facts: HaFacts, expected: Expected) -> Judgement:
    return Judgement(tuple(_findings(facts, expected)), tuple(_void(facts, expected)))


def _findings(facts: HaFacts, expected: Expected) -> Iterator[HaFinding]:
    lost = lost_acks(facts)
    yield _none("lost", unexplained(lost, facts, expected), found=len(lost))
    commits = lost_commits(facts)
    yield _none("commits lost", unexplained(commits, facts, expected), found=len(commits))
    yield _none("double effects", [n for n, times in facts.rows.effects.items() if times > 1])
    yield _none("ids twice", _twice((id_, n) for id_, n in _ids(facts)))
    yield _none("keys twice", _twice((note.key, note.n) for note in facts.notes if note.key))
    yield _none("tokens backwards", tokens_backwards(facts))
    yield _none("stuck", _in_state(facts, "queued", "running", "waiting"))
    yield _none("dead", _in_state(facts, "dead"))
    failed = facts.rows.outcomes.get("failed", 0)
    yield HaFinding("failed", failed, not failed)
    yield from _recovery(facts)
    yield _slowest_call(facts)
    yield from _noise(facts)
    tracebacks = [who for who, log in facts.logs.items() for line in log if line.traceback]
    yield _none("tracebacks", tracebacks)
    yield _none(
        "processes", [(who, code) for who, code in facts.exits.items() if code and who not in facts.pinned]
    )
    yield HaFinding("drained", "yes" if facts.drained else "no", facts.drained)
    yield HaFinding("audit", facts.audit, facts.audit == 0)
    agrees = facts.audit_lost == len({ack.id for ack in lost})
    yield HaFinding("audit --ids", "-" if facts.audit_lost is None else facts.audit_lost, agrees)


def _void(facts: HaFacts, expected: Expected) -> Iterator[str]:
    yield from facts.void
    seen = len(facts.promotions)
    if seen < expected.promotions:
        yield f"{expected.promotions} promotions wanted, {seen} seen"
    if seen and not expected.promotions:
        yield f"no promotion wanted, {seen} seen"
    if expected.one_timeline and len(set(facts.timelines)) != 1:
        yield f"one timeline wanted for all promotions, {sorted(set(facts.timelines))} seen"
    if expected.must_lose and not lost_acks(facts):
        yield "nothing was lost where a loss was wanted"
    if not facts.acks or not facts.notes:
        yield "there was no load"


def lost_acks(facts: HaFacts) -> list[Ack]:
    """Acknowledged jobs that are nowhere; each once, by its first answer."""
    first: dict[int, Ack] = {}
    for ack in facts.acks:
        if ack.id is not None:
            first.setdefault(ack.n, ack)
    return [ack for n, ack in first.items() if n not in facts.rows.jobs]


def lost_commits(facts: HaFacts) -> list[Note]:
    """Commits that a worker was told of, whose effects are nowhere."""
    told = (note for note in facts.notes if note.what == "committed")
    return [note for note in told if (note.n, note.token) not in facts.rows.written]


def unexplained(lost: Iterable[Happened], facts: HaFacts, expected: Expected) -> list[Happened]:
    """Losses outside the window in which asynchronous replication may lose."""
    if not expected.may_lose or facts.lossy is None:
        return list(lost)
    begin, end = facts.lossy
    return [one for one in lost if not begin - LOSS_SLACK_SECONDS <= one.t <= end + LOSS_SLACK_SECONDS]


def tokens_backwards(facts: HaFacts) -> list[tuple[str, int, int]]:
    """Starts with a token that is not above one that was seen before; who, the token, the higher one.

    For one job, at once. For different jobs, once a newer primary was reachable, where the other start was
    seen before this claim: the ledger tells when. The claims of a lost history are in no ledger: there the
    other start was more than five seconds earlier. A worker that knows one server has no way to a newer one,
    and may start a job late that the old one gave it: then the world outside refuses the token.
    """
    starts = sorted(note for note in facts.notes if note.what == "start")
    times = [note.t for note in starts]
    highest = list(itertools.accumulate(((note.token, note.who) for note in starts), max))
    found, of_job = [], dict[tuple[int, int], int]()
    for note in starts:
        known = of_job.get((note.id, note.n), -1)
        if facts.promotions and note.t > facts.promotions[0]:
            token, who = _seen_before(note, facts, times, highest)
            # The jobs of one claim share its token.
            known = max(known, token - 1 if who == note.who else token)
        if note.token <= known and note.who not in facts.pinned:
            found.append((note.who, note.token, known))
        of_job[note.id, note.n] = max(of_job.get((note.id, note.n), -1), note.token)
    return found


def _seen_before(
    note: Note, facts: HaFacts, times: list[float], highest: list[tuple[int, str]]
) -> tuple[int, str]:
    """The highest token that was seen before this one was claimed, and whose it was."""
    claimed = facts.rows.claims.get((note.id, note.token), note.t - SETTLED_SECONDS)
    earlier = bisect_left(times, min(claimed, note.t))
    return highest[earlier - 1] if earlier else (-1, "")


def _ids(facts: HaFacts) -> Iterator[tuple[int, int]]:
    yield from ((ack.id, ack.n) for ack in facts.acks if ack.id is not None)
    yield from ((note.id, note.n) for note in facts.notes)


def _twice(pairs: Iterable[tuple[Hashable, int]]) -> list[object]:
    """What was given to more than one job."""
    given: defaultdict[Hashable, set[int]] = defaultdict(set)
    for thing, n in pairs:
        given[thing].add(n)
    return [(thing, *sorted(ns)) for thing, ns in given.items() if len(ns) > 1]


def _in_state(facts: HaFacts, *states: str) -> list[object]:
    return [(n, *job) for n, job in facts.rows.jobs.items() if job[1] in states]


def _recovery(facts: HaFacts) -> Iterator[HaFinding]:
    """Seconds from the last promotion until each way works again; none without a promotion."""
    if not facts.promotions:
        return
    commits = [(note.t, note.who) for note in facts.notes if note.what == "committed"]
    answers = [(ack.t, ack.who) for ack in facts.acks if ack.id is not None]
    for seen, names in ((commits, facts.workers), (answers, facts.producers)):
        for who in (name for name in names if name not in facts.pinned):
            bound = MULTI_SECONDS_MAX if who in ("multi", "p-multi", "p-keyed") else WAY_SECONDS_MAX
            after = [t - facts.since for t, other in seen if other == who and t > facts.since]
            seconds = round(min(after), 1) if after else None
            yield HaFinding(
                f"{who} s", "never" if seconds is None else seconds, bool(after) and min(after) <= bound
            )


def _slowest_call(facts: HaFacts) -> HaFinding:
    slowest = max((ack for ack in facts.acks), key=lambda ack: ack.call, default=None)
    seconds = slowest.call if slowest else 0.0
    examples = (slowest,) if slowest and seconds > CALL_SECONDS_MAX else ()
    return HaFinding("slowest call s", round(seconds, 1), seconds <= CALL_SECONDS_MAX, examples)


def _noise(facts: HaFacts) -> Iterator[HaFinding]:
    """Loud lines for each five seconds of the outage, of the loudest process."""
    spans = {who: noise(log, facts.began, facts.since) for who, log in facts.logs.items()}
    if spans and facts.promotions:
        who, loudest = max(spans.items(), key=lambda each: each[1])
        yield HaFinding("log lines/5 s", round(loudest, 1), loudest <= NOISE_LINES_MAX, (who,))


def noise(log: Sequence[LogLine], begin: float, end: float) -> float:
    lines = sum(line.loud and begin <= line.t <= end for line in log)
    return lines / max(1.0, (end - begin) / NOISE_SECONDS)


def _none(name: str, wrong: Sequence[object], found: int | None = None) -> HaFinding:
    return HaFinding(name, len(wrong) if found is None else found, not wrong, tuple(wrong[:5]))
