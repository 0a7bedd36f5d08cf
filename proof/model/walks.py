"""Short histories made up from a seed: half of them legal walks of the relation, half with one thing wrong.

A changed history may still be legal (without its last entry, for example). Both checkers judge it, and only
their disagreement is an error.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from proof.model.history import Effect, Entry, JobHistory, Row
from proof.model.relation import NEW, after, claimed, left, unseen

OUTCOMES: Final = ("succeeded", "failed", "expired", "snoozed", "released", "cancelled", "dead")
OVER: Final = ("succeeded", "cancelled")
EPOCH: Final = 1 << 40


def made_up(seed: int, count: int) -> list[JobHistory]:
    """As many histories as asked for, always the same ones for the same seed."""
    random = Random(seed)
    walks = [_walk(random, number) for number in range(count)]
    return [walk if number % 2 else _spoiled(random, walk) for number, walk in enumerate(walks)]


def _walk(random: Random, number: int) -> JobHistory:
    """A legal history: steps of the relation, chosen at random, until the job ends or enough was told."""
    row, most = NEW, random.randint(1, 4)
    entries: list[Entry] = []
    token = moment = 0
    for _ in range(random.randint(0, 6)):
        row = random.choice(sorted((one for one in unseen({row}) if one.state != "later"), key=str) or [row])
        if row.state != "queued":
            break
        token += random.choice((1, 1, 3, EPOCH))
        held = claimed(row, token, f"claim {token}", most)
        if held is None or random.random() < 0.1:
            ended, held = "cancelled", replace(row, claim=None)
            following = [left(row, "cancelled")]
        else:
            ended = random.choice(OUTCOMES)
            following = list(after(held, ended, most))
        if not following:
            continue
        row = random.choice(following)
        began, moment = moment + random.randint(0, 2), moment + random.randint(2, 4)
        entries.append(Entry(ended, held.token, held.claim, held.attempt, row.crashes, began, moment))
        token = held.token
        if row.state in OVER:
            break
    return _standing(random, number, most, tuple(entries), row)


def _standing(random: Random, number: int, most: int, entries: tuple[Entry, ...], row: Row) -> JobHistory:
    """The history with where its job stands now; perhaps under one more lease."""
    held = claimed(row, row.token + 1, "the last claim", most) if random.random() < 0.4 else None
    rows = () if row.state in OVER else (held or row,)
    committed = (Effect("work", row.token),) if row.state == "succeeded" else ()
    watched = committed if random.random() < 0.5 else None
    return JobHistory(
        job_id=number, max_attempts=most, entries=entries, rows=rows, effects=watched,
        success_kept=random.random() < 0.9,
    )  # fmt: skip


def _spoiled(random: Random, walk: JobHistory) -> JobHistory:
    return random.choice(SPOILING)(random, walk)


def _entry_changed(random: Random, walk: JobHistory) -> JobHistory:
    """One value of one entry is another."""
    if not walk.entries:
        return replace(walk, rows=())
    at = random.randrange(len(walk.entries))
    old = walk.entries[at]
    other = random.choice(
        [
            replace(old, outcome=random.choice(OUTCOMES)),
            replace(old, token=max(old.token + random.choice((-2, -1, 1, 2)), 0)),
            replace(old, claim=random.choice([one.claim for one in walk.entries])),
            replace(old, attempt=old.attempt + random.choice((-1, 1))),
            replace(old, crashes=old.crashes + random.choice((-1, 1)) if old.crashes else 1),
            replace(old, claimed_at=old.claimed_at + random.choice((-3, 3))),
            replace(old, settled_at=old.settled_at + random.choice((-3, 3))),
        ]
    )
    return replace(walk, entries=(*walk.entries[:at], other, *walk.entries[at + 1 :]))


def _entry_dropped(random: Random, walk: JobHistory) -> JobHistory:
    at = random.randrange(len(walk.entries)) if walk.entries else 0
    return replace(walk, entries=walk.entries[:at] + walk.entries[at + 1 :])


def _entry_twice(random: Random, walk: JobHistory) -> JobHistory:
    if not walk.entries:
        return walk
    again = random.choice(walk.entries)
    later = replace(again, token=again.token + random.choice((0, 1, 9)), claim="another claim")
    return replace(walk, entries=(*walk.entries, random.choice((again, later))))


def _entries_swapped(random: Random, walk: JobHistory) -> JobHistory:
    return replace(walk, entries=tuple(random.sample(walk.entries, len(walk.entries))))


def _row_changed(random: Random, walk: JobHistory) -> JobHistory:
    """The job stands elsewhere: nowhere, twice, in another state, with another number."""
    stray = Row(random.choice(("queued", "later", "dead", "running")), random.randint(0, 4), None, 1, 0)
    row = walk.rows[0] if walk.rows else stray
    others: list[tuple[Row, ...]] = [
        (), (row, stray), (stray,), (replace(row, state=random.choice(("queued", "later", "dead"))),),
        (replace(row, token=row.token + random.choice((-1, 1)) if row.token else 1),),
        (replace(row, attempt=row.attempt + 1),), (replace(row, crashes=row.crashes + 1),),
    ]  # fmt: skip
    return replace(walk, rows=random.choice(others))


def _effects_changed(random: Random, walk: JobHistory) -> JobHistory:
    stray = Effect("work", random.randint(0, 5))
    others: list[tuple[Effect, ...]] = [(), (stray,), (stray, stray), (*(walk.effects or ()), stray)]
    return replace(walk, effects=random.choice(others))


SPOILING: Final[tuple[Callable[[Random, JobHistory], JobHistory], ...]] = (
    *(_entry_changed,) * 3,
    _entry_dropped,
    _entry_twice,
    _entries_swapped,
    _row_changed,
    _effects_changed,
)
