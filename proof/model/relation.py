"""Job.tla in Python, for histories that are too many or too long for TLC: `check(history)`.

Each function here has its namesake there, and `make model` runs both on the same generated histories.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from proof.model.history import Entry, JobHistory, Row

ENDED: Final = ("succeeded", "cancelled")
WAITING: Final = ("queued", "later")
NEW: Final = Row("queued")
FRESH: Final = frozenset({NEW, Row("later")})
"""A job begins due, or for later."""
NEXT: Final = "Next"
"""What a breach is called when no step of the relation leads there, and no invariant has a name for it."""


@dataclass(frozen=True, slots=True)
class Breach:
    """A promise that a history breaks: its name, which entry shows it, and why."""

    invariant: str
    at: int
    why: str


def check(history: JobHistory) -> tuple[Breach, ...]:
    """Everything the next-state relation does not allow in one job's history; nothing when it is legal.

    >>> won = Entry("succeeded", token=1, claim="x", attempt=1, crashes=0)
    >>> check(JobHistory(job_id=7, max_attempts=3, entries=(won,)))
    ()
    >>> twice = (won, replace(won, token=2, claim="y"))
    >>> check(JobHistory(job_id=7, max_attempts=3, entries=twice))[0].invariant
    'OneEffect'
    """
    rows = set(FRESH)
    for at, entry in enumerate(history.entries):
        following = {later for row in unseen(rows) for later in ends(row, entry, history.max_attempts)}
        breach = _out_of_order(history, at) if following else _name(history, at, rows)
        if breach is not None:
            return (breach,)
        rows = following
    return tuple(_standing(history, rows)) + tuple(_effects(history, rows))


def unseen(rows: set[Row]) -> set[Row]:
    """These rows, and what promote, retry_now and replay make of them: steps that the ledger never knows."""
    promoted = {replace(row, state="queued") for row in rows if row.state == "later"}
    replayed = {replace(row, state="queued", attempt=0, crashes=0) for row in rows if row.state == "dead"}
    return rows | promoted | replayed


def claimed(row: Row, token: int, claim: Any, most: int) -> Row | None:
    """The row under a new lease; None when it cannot be claimed so."""
    if row.state == "queued" and token > row.token and row.attempt < most:
        return Row("running", token, claim, row.attempt + 1, row.crashes)
    return None


def ends(row: Row, entry: Entry, most: int) -> Iterator[Row]:
    """Every row that this entry may leave behind: claimed and settled, or cancelled without a lease."""
    if entry.claim is None:
        if entry.outcome == "cancelled" and row.state in WAITING and _tells(entry, row):
            yield left(row, "cancelled")
        return
    held = claimed(row, entry.token, entry.claim, most)
    if held is not None and entry.attempt == held.attempt:
        for later in after(held, entry.outcome, most):
            if later.crashes == entry.crashes:
                yield later


def after(row: Row, outcome: str, most: int) -> tuple[Row, ...]:
    """Every row that a lease may leave behind when it ends so; none when it cannot end so."""
    match outcome:
        case "succeeded" | "cancelled":
            return (left(row, outcome),)
        case "dead":
            return left(row, "dead"), crashed(left(row, "dead"))
        case "failed" if row.attempt < most:
            return left(row, "later"), crashed(left(row, "later"))
        case "expired" if row.attempt < most:
            return (crashed(left(row, "later")),)
        case "snoozed" | "released":
            return given_back(left(row, "queued")), given_back(left(row, "later"))
        case _:
            return ()


def left(row: Row, state: str) -> Row:
    return replace(row, state=state, claim=None)


def crashed(row: Row) -> Row:
    return replace(row, crashes=row.crashes + 1)


def given_back(row: Row) -> Row:
    return replace(row, attempt=max(row.attempt - 1, 0))


def _tells(entry: Entry, row: Row) -> bool:
    return (entry.token, entry.attempt, entry.crashes) == (row.token, row.attempt, row.crashes)


def _out_of_order(history: JobHistory, at: int) -> Breach | None:
    """A lease whose claim id was used before, or that overlaps the one before it."""
    entry, before = history.entries[at], history.entries[:at]
    if entry.claim is not None and entry.claim in {one.claim for one in before}:
        return Breach("OwnerIsOne", at, f"the claim id of token {entry.token} belonged to an earlier lease")
    if entry.claim is not None and entry.claimed_at > entry.settled_at:
        return Breach(NEXT, at, f"token {entry.token} was settled before it was claimed")
    began = entry.settled_at if entry.claim is None else entry.claimed_at
    if before and began < before[-1].settled_at:
        return Breach("OwnerIsOne", at, f"token {entry.token} begins before token {before[-1].token} ended")
    return None


def _name(history: JobHistory, at: int, rows: set[Row]) -> Breach:
    """Which promise an entry breaks that no step leads to."""
    entry, last = history.entries[at], max(rows, key=lambda row: row.token)
    if last.state in ENDED:
        twice = entry.outcome == last.state == "succeeded"
        name = "OneEffect" if twice else "TerminalStays"
        return Breach(name, at, f"{entry.outcome} under token {entry.token}, after the job {last.state}")
    if entry.claim is not None and entry.token <= last.token:
        return Breach("TokenGrows", at, f"token {entry.token} was issued after token {last.token}")
    came = f"{entry.outcome}, attempt {entry.attempt}, {entry.crashes} crashes"
    return Breach(NEXT, at, f"{came}: no step leads there from {last}")


def _standing(history: JobHistory, rows: set[Row]) -> Iterator[Breach]:
    """Where the job stands now must be where its ledger leads to."""
    at, over = len(history.entries), any(row.state in ENDED for row in rows)
    if len(history.rows) > 1:
        yield Breach("OwnerIsOne", at, f"the job stands in {len(history.rows)} places")
    elif over:
        if history.rows:
            yield Breach("TerminalStays", at, f"the job has ended, and stands as {history.rows[0].state}")
    elif not history.rows:
        if history.success_kept or not any(row.state == "queued" for row in unseen(rows)):
            yield Breach("NothingLost", at, "the job has not ended, and is nowhere")
    elif not _reached(history, rows):
        yield Breach(NEXT, at, f"the ledger does not lead to {history.rows[0]}")


def _reached(history: JobHistory, rows: set[Row]) -> bool:
    stands, reachable = history.rows[0], unseen(rows)
    if stands.state != "running":
        return replace(stands, claim=None) in reachable and stands.claim is None
    used = {entry.claim for entry in history.entries}
    grown = {claimed(row, stands.token, stands.claim, history.max_attempts) for row in reachable}
    return stands in grown and stands.claim is not None and stands.claim not in used


def _effects(history: JobHistory, rows: set[Row]) -> Iterator[Breach]:
    """The work of a job that succeeded is there once, under the token that succeeded; no other work is."""
    if history.effects is None:
        return
    at = len(history.entries)
    won = {row.token for row in rows if row.state == "succeeded"}
    for effect in history.effects:
        if effect.token not in won:
            yield Breach("NoZombie", at, f"{effect.name} was committed under token {effect.token}")
    names = [effect.name for effect in history.effects]
    if len(set(names)) < len(names):
        yield Breach("OneEffect", at, f"an effect was committed twice: {', '.join(sorted(names))}")
    if won and not names:
        yield Breach("OneEffect", at, "the job succeeded without its effect")
