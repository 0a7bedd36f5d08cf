"""The checker: faultline.audit over the database, and what only producers, sink and operating system know."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from faultline.audit import INVARIANTS, AuditReport, examine
from proof.nemesis import flow
from proof.nemesis.flow import Flow
from proof.nemesis.sink import Called
from proof.nemesis.watch import EFFECTS

EXAMPLES_MAX: Final = 8
Note = Mapping[str, Any]

JOBS: Final = "select id, state, task, (args ->> 'request')::bigint from faultline.jobs"
HOLDERS_REFUSED: Final = """
select noted.job_id,
       format('token %s succeeded, and was refused %s times (%s)', noted.token, noted.times, noted.reason)
from faultline.refusals as noted
join faultline.ledger as entry on entry.job_id = noted.job_id and entry.token = noted.token
where entry.outcome = 'succeeded'
"""
RESULTS_OF_OTHERS: Final = """
select entry.job_id,
       format('token %s succeeded, with the result of token %s', entry.token, entry.result::jsonb ->> 'token')
from faultline.ledger as entry
where entry.outcome = 'succeeded' and (entry.result::jsonb ->> 'token')::bigint <> entry.token
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that must be true, whether it is, how much was looked at, and what contradicts it."""

    name: str
    says: str
    holds: bool
    looked_at: int
    examples: tuple[str, ...] = ()
    phase: str = "storm"


@dataclass(frozen=True, slots=True)
class Standing:
    """A job as the database has it in the end."""

    state: str
    task: str
    request: int | None


@dataclass(frozen=True)
class Facts:
    """The facts after the drain."""

    notes: Sequence[Note]
    jobs: Mapping[int, Standing]
    orders: frozenset[int] = frozenset()
    keys: Mapping[Called, frozenset[str]] = field(default_factory=dict)
    """What the sink was called with, by job."""
    ends_seen: Mapping[int, str] = field(default_factory=dict)
    holders_refused: Sequence[str] = ()
    results_of_others: Sequence[str] = ()
    flow: Flow = field(default_factory=Flow)
    promised_until: float = float("inf")
    """After a failover that lost its last moments: what was answered in them may be gone."""

    def said(self, word: str) -> list[Note]:
        """The acknowledged enqueues, as far as they were promised to last."""
        return [note for note in self.notes if note["said"] == word and note["at"] < self.promised_until]


def gather(conn: psycopg.Connection[Any], notes: Sequence[Note], **more: Any) -> Facts:
    """Read what the judges need from the database."""
    jobs = {row[0]: Standing(*row[1:]) for row in conn.execute(JOBS).fetchall()}
    orders = frozenset(request for (request,) in conn.execute("select request from storm.orders").fetchall())
    refused = [f"job {job}: {told}" for job, told in conn.execute(HOLDERS_REFUSED).fetchall()]
    others = [f"job {job}: {told}" for job, told in conn.execute(RESULTS_OF_OTHERS).fetchall()]
    flowed = flow.gather(conn)
    return Facts(notes, jobs, orders, holders_refused=refused, results_of_others=others, flow=flowed, **more)


def audited(conn: psycopg.Connection[Any], facts: Facts) -> Iterator[Finding]:
    """The invariants, by the one checker that knows them."""
    acknowledged = [note["job"] for note in facts.said("ok")]
    report: AuditReport = examine(conn, effects=EFFECTS, acknowledged=acknowledged)
    for verdict in report.verdicts:
        examples = tuple(str(example) for example in verdict.examples[:EXAMPLES_MAX])
        yield Finding(verdict.name, SAYS[verdict.name], verdict.holds, verdict.looked_at, examples)


def judge(facts: Facts) -> Iterator[Finding]:
    """What the database alone cannot know. Pure: facts in, findings out."""
    made: dict[int, list[int]] = defaultdict(list)
    for job, standing in facts.jobs.items():
        if standing.request is not None:
            made[standing.request].append(job)
    yield _acknowledged(facts)
    yield _finding("OneRequest", facts.notes, _requests(facts, made))
    yield _finding("Together", facts.orders, _orders(facts, made))
    yield _finding("CancelStays", facts.said("cancelled"), _cancels(facts))
    yield _finding("KeyStays", facts.keys, _keys(facts))
    yield _finding("HolderIsHeard", facts.jobs, iter(facts.holders_refused))
    yield _finding("ResultIsOwn", facts.jobs, iter(facts.results_of_others))
    yield _finding("EndsStay", facts.ends_seen, _ends(facts))
    for name, looked_at, against in flow.checks(facts.flow):
        yield _finding(name, range(looked_at), against)


def _finding(name: str, looked_at: Any, against: Iterator[str]) -> Finding:
    examples = tuple(against)
    return Finding(name, SAYS[name], not examples, len(looked_at), examples[:EXAMPLES_MAX])


def _acknowledged(facts: Facts) -> Finding:
    """Every acknowledged enqueue is there, and is the request that was sent."""
    against = []
    for note in facts.said("ok"):
        standing = facts.jobs.get(note["job"])
        if standing is None:
            against.append(f"request {note['request']} was answered with job {note['job']}, which is nowhere")
        elif standing.request != note["request"]:
            against.append(f"job {note['job']} is request {standing.request}, not {note['request']}")
    return _finding("Acknowledged", facts.said("ok"), iter(against))


def _requests(facts: Facts, made: Mapping[int, list[int]]) -> Iterator[str]:
    for request, jobs in made.items():
        if len(jobs) > 1:
            yield f"request {request} made jobs {', '.join(map(str, sorted(jobs)))}"
    for note in facts.said("ok"):
        if note.get("again", note["job"]) != note["job"]:
            yield f"request {note['request']} has one key, and jobs {note['job']} and {note['again']}"
    for note in facts.notes:
        if note["said"] in ("rolled back", "error") and note.get("request") in made:
            yield f"request {note['request']} was told as not made ({note['said']}), and is a job"


def _orders(facts: Facts, made: Mapping[int, list[int]]) -> Iterator[str]:
    for request in facts.orders:
        if request not in made:
            yield f"order {request} was committed without the job that was enqueued with it"
    for note in facts.notes:
        if note["how"] == "in" and note["request"] in made and note["request"] not in facts.orders:
            yield f"request {note['request']} is a job, and its order was not committed"


def _cancels(facts: Facts) -> Iterator[str]:
    for note in facts.said("cancelled"):
        standing = facts.jobs.get(note["job"])
        if standing is not None and standing.state != "cancelled":
            yield f"job {note['job']} was cancelled, and is {standing.state}"


def _keys(facts: Facts) -> Iterator[str]:
    owners: dict[str, Called] = {}
    for called, keys in facts.keys.items():
        if len(keys) > 1:
            yield f"job {called[0]} called with keys {', '.join(sorted(keys))}"
        for key in keys:
            if owners.setdefault(key, called) != called:
                yield f"key {key} is that of requests {owners[key][1]} and {called[1]}"
    for job, standing in facts.jobs.items():
        called = (job, standing.request)
        if standing.task == "call_out" and standing.state == "succeeded" and called not in facts.keys:
            yield f"job {job} succeeded without its call"


def _ends(facts: Facts) -> Iterator[str]:
    for job, state in facts.ends_seen.items():
        standing = facts.jobs.get(job)
        if standing is None or standing.state != state:
            yield f"job {job} was seen {state}, and is {standing.state if standing else 'nowhere'}"


SAYS: Final[Mapping[str, str]] = {
    **INVARIANTS,
    **flow.SAYS,
    "Acknowledged": "every acknowledged enqueue is there, as it was sent",
    "OneRequest": "a request makes one job at most; rolled back or refused, none; with a key, the same",
    "Together": "what was enqueued in a transaction is there with its own rows, or not at all",
    "CancelStays": "a job whose cancel was answered never succeeds",
    "KeyStays": "the outside world is called with one key a job",
    "HolderIsHeard": "a lease that succeeded was never told that it had not",
    "ResultIsOwn": "the result of a success is the one its holder returned",
    "EndsStay": "every end that was seen during the run is still the end",
}
