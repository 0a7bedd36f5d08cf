"""The machine: long mixed histories of SQL verbs, legal and stale, against a reference and the oracle.

Hypothesis chooses the steps and shrinks what fails. Every step is one call on real PostgreSQL; after each,
all that a reader sees must be what the reference says, and audit and relation must find nothing.
"""

from datetime import timedelta
from typing import Any, Final, TypeVar
from uuid import UUID, uuid4

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from faultline.errors import KeyConflict, LeaseLost, WrongState
from faultline.job import NewJob
from faultline.lease import Lease
from faultline.store import calls
from faultline.store.call import Call
from faultline.store.pool import Store
from proof.properties.ground import BEGINNING, PropertyDatabase
from proof.properties.reference import CRASHES_MAX, KEY_FOR, LEASE, Known, Name, Reference, ReferenceLease

T = TypeVar("T")

QUEUES: Final = ("one", "two")
LEASES_MAX: Final = 12
"""How far back a stale call may reach: older leases show nothing new."""

ROUNDS_MAX: Final = 10
"""Within so many rounds of the watchdog and a worker, hours apart, everything must have ended."""

some_queue = st.sampled_from(QUEUES)
some_queues = st.sampled_from((QUEUES, ("one",), ("two",)))
some_delay = st.sampled_from((timedelta(0), timedelta(seconds=5), timedelta(minutes=2)))
some_start = st.sampled_from((timedelta(0), timedelta(0), timedelta(0), timedelta(seconds=5)))
some_time = st.sampled_from([timedelta(seconds=seconds) for seconds in (4, 12, 16, 70, 70, 7200)])
VERBS: Final = ("complete", "fail", "crash", "crash_alone", "bury", "snooze", "release", "cancel_claimed")
some_verb = st.sampled_from(("complete", *VERBS))
some_place = st.integers(0, 100)
"""Which of those that are there, counted from the newest and round and round."""


class Machine(RuleBasedStateMachine):
    """One history. `ground` is set by the code that makes the class for a run."""

    ground: PropertyDatabase
    audit_every = 4
    """After how many steps the audit is asked; its questions are most of what a step costs."""

    def __init__(self) -> None:
        super().__init__()
        self.ground.clear()
        self.told = Reference(BEGINNING)
        self.leases: list[ReferenceLease] = []
        self.steps = 0

    def run(self, call: Call[T]) -> T:
        return self.ground.run(call)

    def seen(self, what: str, times: int = 1) -> None:
        self.ground.counts[what] += times

    # Producers.

    @initialize(jobs=st.integers(0, 2))
    def some_jobs(self, jobs: int) -> None:
        self.enqueue_keyed("one", "a", 1)
        for number in range(jobs):
            self.enqueue(QUEUES[number % 2], 0, 2, timedelta(0))

    @rule(queue=some_queue, priority=st.sampled_from((0, 0, 5)), most=st.integers(1, 3), delay=some_start)
    def enqueue(self, queue: str, priority: int, most: int, delay: timedelta) -> None:
        new = NewJob(task="work", args="{}", queue=queue, priority=priority, max_attempts=most, delay=delay)
        job_id = self.run(calls.enqueue(new))

        assert job_id not in self.told.jobs
        self.told.add(Known(job_id, queue, priority, most, self.told.now + delay))

    @rule(queue=st.sampled_from(("one", "one", "two")), key=st.just("a"), order=st.sampled_from((1, 1, 1, 2)))
    def enqueue_keyed(self, queue: str, key: str, order: int) -> None:
        new = NewJob(
            task="work", args=f'{{"order": {order}}}', queue=queue, max_attempts=1, key=key, key_for=KEY_FOR
        )
        name = self.told.named(queue, key)
        if name is not None and name.request != order:
            self.seen("keys in conflict")
            try:
                self.run(calls.enqueue(new))
            except KeyConflict:
                return
            raise AssertionError(f"OneEffect: key {key} was given to another request")
        job_id = self.run(calls.enqueue(new))

        if name is None:
            assert job_id not in self.told.jobs, f"OneEffect: key {key} names an old job"
            self.told.add(Known(job_id, queue, 0, 1, self.told.now, key=key))
            self.told.keys[queue, key] = Name(job_id, order)
        else:
            self.seen("keys found again")
            assert job_id == name.job_id, f"OneEffect: key {key} made a second job"

    # Workers.

    @rule(queue=some_queue, verb=some_verb, delay=some_delay)
    def an_attempt(self, queue: str, verb: str, delay: timedelta) -> None:
        """What a worker does most of the time: claim, and settle what it got last."""
        self.a_lease(queue)
        if self._held():
            self._settle(self._held()[-1], verb, delay)

    @rule(queue=some_queue)
    def a_lease(self, queue: str) -> None:
        """A claim that finds work, if need be made for it; unless its queue is paused."""
        if not self.told.due((queue,)):
            self.enqueue(queue, 0, 3, timedelta(0))
        self.claim((queue,), 3)

    @rule(queues=some_queues, room=st.integers(1, 3))
    def claim(self, queues: tuple[str, ...], room: int) -> None:
        due, claim = self.told.due(queues), uuid4()
        rows = self.run(calls.claim(queues, room, lease=LEASE, claim=claim))

        taken = [self.told.jobs[row.id] for row in rows]
        assert len(taken) == min(room, len(due)), f"claimed {len(taken)} of {len(due)}, room for {room}"
        assert all(job in due for job in taken), "OwnerIsOne: claimed what was not free"
        left = [job.priority for job in due if job not in taken]
        assert not left or all(job.priority <= min(left) for job in taken), "the urgent were left"
        for row, job in zip(rows, taken, strict=True):
            assert row.token > job.token, f"TokenGrows: {row.token} after {job.token}"
            assert row.attempt == job.attempt + 1
            self.leases.append(self.told.claim(row.id, row.token, claim))
        self.seen("claims", len(rows))

    def _lease(self, place: int) -> ReferenceLease:
        recent = self.leases[-LEASES_MAX:][::-1]
        return recent[place % len(recent)]

    @precondition(lambda self: self.leases)
    @rule(place=some_place, verb=some_verb, delay=some_delay)
    def settle_any(self, place: int, verb: str, delay: timedelta) -> None:
        self._settle(self._lease(place), verb, delay)

    @precondition(lambda self: self._held())
    @rule(place=some_place, spoil=st.sampled_from(("claim", "token")))
    def settle_wrongly(self, place: int, spoil: str) -> None:
        """By every verb: each must check all three values."""
        held = self._held()
        for verb in VERBS:
            self._settle(_spoiled(held[place % len(held)], spoil), verb, timedelta(0))

    def _held(self) -> list[ReferenceLease]:
        """The leases that still hold."""
        return [held for held in self.leases if self.told.holds(held)]

    def _settle(self, held: ReferenceLease, verb: str, delay: timedelta) -> None:
        fits = self.told.holds(held)
        try:
            if verb == "complete":
                self._commit(held)
            else:
                self.run(_settling(held, verb, delay))
        except LeaseLost as lost:
            self.seen("stale writes refused")
            assert not fits, f"NothingLost: the owner was refused: {lost}"
            assert lost.reason == self.told.why_refused(held)
            return
        assert fits, f"NoZombie: {verb} went through for {held}"
        self.told.settle(held, verb, delay)
        self.seen(f"{verb} went through")

    def _commit(self, held: ReferenceLease) -> None:
        """A row of the user's and the success, in one transaction: both, or neither."""
        with self.ground.conn.transaction():
            self.ground.conn.execute(
                "insert into still.effects values (%s, %s, %s, 'work')", [held.job_id, held.token, held.claim]
            )
            Store.run_in(self.ground.conn, calls.complete(_lease(held), '"done"'))

    @precondition(lambda self: self.leases)
    @rule(places=st.lists(some_place, min_size=1, max_size=3), failed=st.booleans(), delay=some_delay)
    def settle_many(self, places: list[int], failed: bool, delay: timedelta) -> None:
        chosen = list(dict.fromkeys(self._lease(place) for place in places))
        leases, through = (
            [_lease(held) for held in chosen],
            [held for held in chosen if self.told.holds(held)],
        )
        if failed:
            refused = self.run(calls.fail_many(leases, ["boom"] * len(leases), [delay] * len(leases)))
        else:
            refused = self.run(calls.complete_many(leases, [None] * len(leases)))
            self._effects_of(through)

        for held in through:
            self.told.settle(held, "fail" if failed else "complete", delay)
        wrong = {(held.job_id, held.token) for held in chosen if held not in through}
        assert {(answer.job_id, answer.token) for answer in refused} == wrong, (
            f"NoZombie: {refused} of {chosen}"
        )
        self.seen("stale writes refused", len(wrong))

    def _effects_of(self, through: list[ReferenceLease]) -> None:
        for held in through:
            self.ground.conn.execute(
                "insert into still.effects values (%s, %s, %s, 'work')", [held.job_id, held.token, held.claim]
            )

    @precondition(lambda self: self.leases)
    @rule(place=some_place, lease=st.sampled_from((2, 15, 7200)))
    def heartbeat(self, place: int, lease: int) -> None:
        """For all in hand, and for one that may be stale."""
        chosen = list({held.job_id: held for held in (*self._held(), self._lease(place))}.values())
        seconds = timedelta(seconds=lease)
        answers = self.run(calls.heartbeat([_lease(held) for held in chosen], seconds))

        expected = {held.job_id: self.told.beat(held, seconds) for held in chosen}
        assert {beat.job_id: beat.answer for beat in answers} == expected
        self.seen("beats lost", sum(word != "held" for word in expected.values()))

    @precondition(lambda self: self.leases)
    @rule(place=some_place, spoil=st.sampled_from(("", "", "claim")))
    def ask(self, place: int, spoil: str) -> None:
        held = _spoiled(self._lease(place), spoil)

        answer, expected = self.run(calls.outcome(_lease(held))), self.told.outcome(held)
        assert answer == expected, f"outcome() says {answer}, and it is {expected}"
        self.seen("outcomes asked for")

    @rule(verb=st.sampled_from(("complete", "bury", "crash_alone", "cancel_claimed")))
    def a_key_ends_with_its_window(self, verb: str) -> None:
        """After its job has ended in any way, the same key gives another job."""
        self.enqueue_keyed("two", "a", 1)
        self.claim(("two",), 3)
        named = [held for held in self._held() if self.told.jobs[held.job_id].key is not None]
        if named:
            self._settle(named[-1], verb, timedelta(0))
            self.time_passes(KEY_FOR * 2, "")
            self.enqueue_keyed("two", "a", 1)

    # Time and the watchdog.

    @rule(by=some_time, then=st.sampled_from(("watchdog", "watchdog", "key", "")))
    def time_passes(self, by: timedelta, then: str) -> None:
        """Then a caller that waited for it acts."""
        self.ground.move(by)
        self.told.now += by
        if then == "watchdog":
            self.watchdog(True)
        elif then == "key":
            self.enqueue_keyed("one", "a", 1)

    @rule(first=st.sampled_from((True, True, False)))
    def watchdog(self, first: bool) -> None:
        """Reap and promote, in either order."""
        for chore in (self._reap, self._promote) if first else (self._promote, self._reap):
            chore()

    def _reap(self) -> None:
        taken, late = {row.job_id for row in self.run(calls.reap())}, self.told.reap()
        assert taken == late, f"reaped {taken}, and {late} had run out"
        self.seen("leases reaped", len(taken))

    def _promote(self) -> None:
        moved, due = sum(count for _, count in self.run(calls.promote())), self.told.promote()
        assert moved == due, f"promoted {moved}, and {due} were due"

    # People.

    @precondition(lambda self: self.told.jobs)
    @rule(
        place=some_place,
        act=st.sampled_from(("cancel", "retry_now", "retry_now", "replay", "replay", "replay")),
    )
    def act(self, place: int, act: str) -> None:
        job_id = list(self.told.jobs)[place % len(self.told.jobs)]
        may = getattr(self.told, act)(job_id)
        try:
            self.run(getattr(calls, act)(job_id))
        except WrongState as wrong:
            assert not may, f"{act} was refused: {wrong}"
            self.seen("acts refused")
        else:
            assert may, f"TerminalStays: {act} went through for job {job_id}"
            self.seen(act)

    @precondition(lambda self: any(job.state == "dead" for job in self.told.jobs.values()))
    @rule()
    def replay_all(self) -> None:
        dead = {job.id for job in self.told.jobs.values() if self.told.replay(job.id)}

        replayed = self.run(calls.replay_many())
        assert set(replayed) == dead
        self.seen("replay", len(dead))

    @rule(queue=some_queue, pause=st.sampled_from((True, False, False, False)))
    def pause_or_resume(self, queue: str, pause: bool) -> None:
        if pause:
            self.run(calls.pause(queue))
            self.told.paused |= {queue}
        elif queue in self.told.paused:
            self.run(calls.resume(queue))
            self.told.paused -= {queue}

    # What must be true after each of them.

    @invariant()
    def the_database_holds_what_the_reference_says(self) -> None:
        sights = self.ground.sights()
        for job_id, known in self.told.jobs.items():
            state, *facts = known.sight
            shown = ("queued" if state == "later" else state, *facts)
            assert sights.get(job_id) == shown, f"job {job_id} is {sights.get(job_id)}, not {shown}"
        assert set(sights) == set(self.told.jobs)

    @invariant()
    def the_relation_allows_every_history(self) -> None:
        self.ground.walk()
        self.seen("histories walked", len(self.told.jobs))

    @invariant()
    def the_audit_finds_nothing(self) -> None:
        self.steps += 1
        if self.steps % self.audit_every == 0:
            self.ground.audit(set(self.told.jobs))
            self.seen("audits")

    def teardown(self) -> None:
        """Whatever came before, it drains."""
        for queue in QUEUES:
            if queue in self.told.paused:
                self.run(calls.resume(queue))
        for _ in range(ROUNDS_MAX):
            if not self._waiting():
                break
            self.ground.move(timedelta(hours=2))
            self.run(calls.reap())
            self.run(calls.promote())
            rows = self.run(calls.claim(QUEUES, 1000, lease=LEASE, claim=(claim := uuid4())))
            for row in rows:
                self._commit(ReferenceLease(row.id, row.token, claim))
        assert not self._waiting(), f"Drains: {self._waiting()} after {ROUNDS_MAX} rounds"
        self.ground.walk()
        self.ground.audit(set(self.told.jobs), bound=timedelta(minutes=2))

    def _waiting(self) -> list[int]:
        sights = self.ground.sights().items()
        return [job_id for job_id, (state, *_) in sights if state in ("queued", "running")]


def _lease(held: ReferenceLease) -> Lease:
    return Lease(held.job_id, held.token, held.claim, LEASE.total_seconds(), 0.0)


def _spoiled(held: ReferenceLease, spoil: str) -> ReferenceLease:
    """The same lease with one value wrong: what a guess, a mix-up or a reissued number would show."""
    if spoil == "claim":
        return ReferenceLease(held.job_id, held.token, UUID(int=held.claim.int ^ 1))
    if spoil == "token":
        return ReferenceLease(held.job_id, held.token + 1, held.claim)
    return held


def _settling(held: ReferenceLease, verb: str, delay: timedelta) -> Call[Any]:
    lease = _lease(held)
    match verb:
        case "fail":
            return calls.fail(lease, "boom", delay)
        case "crash" | "crash_alone":
            alone = verb == "crash_alone"
            return calls.crash(lease, "gone", "SIGSEGV", alone=alone, max_crashes=CRASHES_MAX, delay=delay)
        case "snooze":
            return calls.snooze(lease, delay)
        case "release":
            return calls.release(lease, delay=delay)
        case "bury":
            return calls.bury(lease, "no good")
        case _:
            return calls.cancel_claimed(lease)
