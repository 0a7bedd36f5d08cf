"""Limits: random flows of limited jobs never hold more leases than allowed, keep their order, and all end."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from hypothesis import strategies as st

from faultline.job import NewJob
from faultline.lease import Lease
from faultline.limit import Limit
from faultline.store import calls
from faultline.store.call import Call
from proof.properties.asking import asked
from proof.properties.ground import PropertyDatabase

LEASE: Final = timedelta(seconds=15)
KEYS: Final = ("a", "b", "c")
ROUNDS_MAX: Final = 200

some_limit = st.builds(
    lambda per_key, total, on_retry: Limit(
        per_key=per_key, total=total, key="k", on_retry=on_retry if per_key == 1 else "yield"
    ),
    per_key=st.sampled_from((None, 1, 1, 2)),
    total=st.sampled_from((None, 1, 3)),
    on_retry=st.sampled_from(("yield", "block")),
)
some_step = st.one_of(
    st.tuples(st.just("enqueue"), st.sampled_from(KEYS), st.integers(1, 3)),
    st.tuples(st.just("claim"), st.integers(1, 5)),
    st.tuples(st.sampled_from(("complete", "fail", "release", "snooze", "cancel")), st.integers(0, 9)),
    st.tuples(st.just("lapse")),
    st.tuples(st.just("tick"), st.sampled_from((1, 5))),
)


class Flow:
    """A history of one limit: what holds a lease, by key."""

    def __init__(self, ground: PropertyDatabase, limit: Limit) -> None:
        self.ground = ground
        self.limit = limit
        self.keys: dict[int, str] = {}
        self.held: dict[int, Lease] = {}
        self.began: dict[str, list[int]] = {key: [] for key in KEYS}
        self.ended: set[int] = set()

    def enqueue(self, key: str, jobs: int) -> None:
        new = NewJob(task="work", args=json.dumps({"k": key}), max_attempts=10_000)
        for job_id in self.ground.run(calls.enqueue_many([new] * jobs)):
            self.keys[job_id] = key

    def claim(self, room: int) -> int:
        claim = uuid4()
        rows = self.ground.run(calls.claim(["default"], room, lease=LEASE, claim=claim))
        for row in rows:
            if self.limit.on_retry == "block":
                early = {job_id for job_id in self.began[self.keys[row.id]] if job_id < row.id}
                assert early <= self.ended, "InOrder: one that had begun was passed"
            self.held[row.id] = Lease(row.id, row.token, claim, LEASE.total_seconds(), 0.0)
            if row.attempt == 1 and row.id not in self.began[self.keys[row.id]]:
                self.began[self.keys[row.id]].append(row.id)
        self.check()
        return len(rows)

    def check(self) -> None:
        of_key = Counter(self.keys[job_id] for job_id in self.held)
        assert len(self.held) <= (self.limit.total or len(self.held)), "WithinLimit: in total"
        if self.limit.per_key is not None:
            assert max(of_key.values(), default=0) <= self.limit.per_key, "WithinLimit: of a key"
        if self.limit.per_key == 1:
            assert all(begun == sorted(begun) for begun in self.began.values()), "InOrder"

    def end(self, how: str, which: int) -> None:
        if not self.held:
            return
        job_id = sorted(self.held)[which % len(self.held)]
        lease = self.held.pop(job_id)
        if how in ("complete", "cancel"):
            self.ended.add(job_id)
        call: Call[Any]
        match how:
            case "complete":
                call = calls.complete(lease, None)
            case "fail":
                call = calls.fail(lease, "no", timedelta(seconds=2))
            case "release":
                call = calls.release(lease)
            case "snooze":
                call = calls.snooze(lease, timedelta(seconds=2))
            case _:
                call = calls.cancel(job_id)
        run: Callable[[Call[Any]], Any] = self.ground.run
        run(call)

    def lapse(self) -> None:
        """All workers die: their leases run out."""
        self.tick(60)
        self.ground.conn.execute("update faultline.rounds set hold_until = '-infinity', gap_at = '{}'")
        self.ground.run(calls.reap())
        self.held.clear()

    def tick(self, seconds: int) -> None:
        self.ground.conn.execute("update still.clock set moment = moment + %s", [timedelta(seconds=seconds)])
        self.ground.run(calls.promote())
        self.ground.run(calls.raise_limit_floors())


@asked(on_database=True, limit=some_limit, steps=st.lists(some_step, max_size=20))
def a_flow_keeps_to_its_limit_and_ends(
    ground: PropertyDatabase, limit: Limit, steps: list[tuple[Any, ...]]
) -> None:
    """At each claim no more leases than allowed; in the order of ids where jobs of a key are in line."""
    ground.clear()
    ground.run(calls.set_limit("api", limit))
    ground.run(calls.limit_task("work", "api", ["k"]))
    flow = Flow(ground, limit)
    for verb, *args in steps:
        match verb:
            case "enqueue" | "claim" | "tick":
                getattr(flow, verb)(*args)
            case "lapse":
                flow.lapse()
            case _:
                flow.end(verb, *args)
    for _ in range(ROUNDS_MAX):
        flow.tick(5)
        flow.claim(50)
        flow.ground.run(calls.complete_many([*flow.held.values()], [None] * len(flow.held)))
        flow.ended |= flow.held.keys()
        flow.held.clear()
        (left,) = ground.conn.execute(
            "select (select count(*) from faultline.active) + (select count(*) from faultline.later)"
        ).fetchone() or (0,)
        if not left:
            break
    assert not left, "Drains: a limited job never ended"
    ground.counts["limited jobs"] += len(flow.keys)


@asked(
    on_database=True,
    rate=st.sampled_from((0.5, 3.0, 20.0)),
    burst=st.integers(1, 5),
    waits=st.lists(st.sampled_from((0.0, 0.05, 0.4, 3.0, -1.0, -60.0)), max_size=25),
)
def a_rate_grants_its_burst_and_its_rate(
    ground: PropertyDatabase, rate: float, burst: int, waits: list[float]
) -> None:
    """However the clock goes: in time that passed, burst plus rate; a clock set back gives nothing."""
    ground.clear()
    ground.run(calls.set_limit("api", Limit(rate=rate, burst=burst)))
    ground.run(calls.limit_task("work", "api"))
    ground.run(calls.enqueue_many([NewJob(task="work", args="{}", max_attempts=3)] * 200))
    granted, latest, now, elapsed = 0, 0.0, 0.0, 0.0
    for wait in waits:
        now += wait
        elapsed += max(0.0, wait)
        latest = max(latest, now)
        ground.conn.execute("update still.clock set moment = moment + %s", [timedelta(seconds=wait)])
        granted += len(ground.run(calls.claim(["default"], 50, lease=LEASE, claim=uuid4())))
        assert granted <= burst + rate * elapsed + 1e-6, "WithinRate"


PROPERTIES: Final = (a_flow_keeps_to_its_limit_and_ends, a_rate_grants_its_burst_and_its_rate)
