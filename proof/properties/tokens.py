"""Tokens: over any sequence of claims, ends, rollbacks, promotions and restores, a job's tokens grow."""

from datetime import timedelta
from typing import Final
from uuid import uuid4

from hypothesis import strategies as st

from faultline.errors import LeaseLost
from faultline.job import NewJob
from faultline.lease import Lease
from faultline.store import calls
from proof.properties.asking import asked
from proof.properties.ground import PropertyDatabase

LEASE: Final = timedelta(seconds=15)

# A promotion raises the timeline; a restore elsewhere is another server, whose timeline starts again.
HAPPENS: Final = {
    "the sequence goes back": "select setval('faultline.tokens', 1, false)",
    "a standby is promoted": "update still.server"
    " set timeline = timeline + 1, started = started + interval '1 minute'",
    "restored elsewhere": "update still.server"
    " set system_identifier = system_identifier + 1, timeline = 1, started = started + interval '1 minute'",
    "the server starts again": "update still.server set started = started + interval '1 minute'",
}
# The worker knows of the claim; the promoted standby lost it, and the numbers since.
LOST: Final = "a failover loses a claim"
CLAIMS: Final = ("claim and release", "claim and fail", "claim and let it run out", "claim and roll back")
some_acts = st.lists(st.sampled_from((*HAPPENS, LOST, *CLAIMS, *CLAIMS)), min_size=1, max_size=10)


@asked(on_database=True, acts=some_acts)
def tokens_grow_over_any_sequence(ground: PropertyDatabase, acts: list[str]) -> None:
    """The fence lets only the number just issued through."""
    ground.clear()
    ground.run(calls.enqueue(NewJob(task="work", args="{}", max_attempts=10_000)))
    issued: list[Lease] = []
    for act in acts:
        if act in HAPPENS:
            if act == "restored elsewhere":
                # What is restored is what was: from a backup older than the last claims numbers may come
                # again, and only the claim id tells them apart.
                _note(ground, issued, "claim and release")
            ground.conn.execute(HAPPENS[act].encode())
        else:
            _note(ground, issued, act)


def _note(ground: PropertyDatabase, issued: list[Lease], act: str) -> None:
    lease = _play(ground, act)
    if lease is None:
        return
    assert not issued or lease.token > issued[-1].token, f"TokenGrows: {lease} after {issued[-1]}"
    for old in issued:
        _must_be_refused(ground, old)
    issued.append(lease)


def _play(ground: PropertyDatabase, act: str) -> Lease | None:
    claim = uuid4()
    taking = calls.claim(["default"], 1, lease=LEASE, claim=claim)
    if act == "claim and roll back" or act == LOST:
        (last,) = ground.conn.execute("select last_value from faultline.tokens").fetchone() or (1,)
        with ground.conn.transaction(force_rollback=True):
            (row,) = ground.run(taking)
        if act != LOST:
            return None
        ground.conn.execute("select setval('faultline.tokens', %s, false)", [last])
        ground.conn.execute(HAPPENS["a standby is promoted"].encode())
        return Lease(row.id, row.token, claim, LEASE.total_seconds(), 0.0)
    (row,) = ground.run(taking)
    lease = Lease(row.id, row.token, claim, LEASE.total_seconds(), 0.0)
    _end(ground, lease, act)
    return lease


def _end(ground: PropertyDatabase, lease: Lease, act: str) -> None:
    """Have the job free again."""
    if act == "claim and release":
        ground.run(calls.release(lease))
    elif act == "claim and fail":
        ground.run(calls.fail(lease, "boom", timedelta(0)))
    else:
        ground.move(LEASE * 2)
        ground.run(calls.reap())
        ground.move(timedelta(minutes=5))
    ground.run(calls.promote())


def _must_be_refused(ground: PropertyDatabase, old: Lease) -> None:
    try:
        ground.run(calls.complete(old, None))
    except LeaseLost:
        return
    raise AssertionError(f"NoZombie: {old} went through")


PROPERTIES: Final = (tokens_grow_over_any_sequence,)
