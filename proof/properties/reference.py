"""A queue in a dictionary: what Faultline promises, without a database.

It is written from the documents, not from the SQL, and knows one thing less: which of several due jobs of one
urgency a claim takes is the database's choice, and is told to it.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

KEY_FOR: Final = timedelta(minutes=1)
LEASE: Final = timedelta(seconds=15)
TIMEOUT: Final = timedelta(hours=1)
CRASH_DELAY_MAX: Final = timedelta(minutes=5)
CRASHES_MAX: Final = 1
WAITING: Final = ("queued", "later")


@dataclass(frozen=True, slots=True)
class ReferenceLease:
    """A lease as its worker remembers it, also after its end."""

    job_id: int
    token: int
    claim: UUID


@dataclass(slots=True)
class Known:
    """A job, as it should be."""

    id: int
    queue: str
    priority: int
    max_attempts: int
    run_at: datetime
    state: str = "queued"
    token: int = 0
    claim: UUID | None = None
    attempt: int = 0
    crashes: int = 0
    lease_until: datetime | None = None
    deadline: datetime | None = None
    key: str | None = None
    ended: dict[UUID, str] = field(default_factory=dict)
    """How each lease ended, by its claim."""
    ended_tokens: set[int] = field(default_factory=set)

    @property
    def held(self) -> ReferenceLease | None:
        return None if self.claim is None else ReferenceLease(self.id, self.token, self.claim)

    @property
    def sight(self) -> tuple[str, int, int, int, str | None, datetime | None]:
        """What a reader of the database sees of it."""
        return (self.state, self.token, self.attempt, self.crashes, self.key, self.lease_until)

    def leave(self, state: str, ending: str) -> None:
        """The lease is over, if there was one."""
        if self.claim is not None:
            self.ended[self.claim] = ending
        if self.claim is not None or ending == "cancelled":
            self.ended_tokens.add(self.token)
        self.state, self.claim, self.lease_until, self.deadline = state, None, None, None


@dataclass(frozen=True, slots=True)
class Name:
    """What a key stands for: a job, the request it was made from, and until when after the job ended."""

    job_id: int
    request: object
    until: datetime | None = None


class Reference:
    """Every job and key, and the verbs on them."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.jobs: dict[int, Known] = {}
        self.keys: dict[tuple[str, str], Name] = {}
        self.paused: set[str] = set()

    def add(self, job: Known) -> None:
        job.state = "later" if job.run_at > self.now else "queued"
        self.jobs[job.id] = job

    def named(self, queue: str, key: str) -> Name | None:
        """What a key stands for now; None when it is free or its window has passed."""
        name = self.keys.get((queue, key))
        lapsed = name is not None and name.until is not None and name.until < self.now
        return None if lapsed else name

    def due(self, queues: tuple[str, ...]) -> list[Known]:
        """What a claim may take, the urgent first."""
        free = [
            job
            for job in self.jobs.values()
            if job.state == "queued" and job.queue in queues and job.queue not in self.paused
        ]
        return sorted(free, key=lambda job: job.priority)

    def claim(self, job_id: int, token: int, claim: UUID) -> ReferenceLease:
        job = self.jobs[job_id]
        job.state, job.token, job.claim, job.attempt = "running", token, claim, job.attempt + 1
        job.lease_until, job.deadline = self.now + LEASE, self.now + TIMEOUT
        return ReferenceLease(job_id, token, claim)

    def holds(self, held: ReferenceLease) -> bool:
        """The fence: all three values, and the lease not over."""
        return self.jobs[held.job_id].held == held

    def beat(self, held: ReferenceLease, lease: timedelta) -> str:
        job = self.jobs[held.job_id]
        if not self.holds(held):
            return "cancel" if job.state == "cancelled" else "lost"
        assert job.lease_until is not None
        assert job.deadline is not None
        job.lease_until = max(job.lease_until, min(self.now + lease, job.deadline))
        return "held"

    def settle(self, held: ReferenceLease, verb: str, delay: timedelta) -> None:
        """End a lease that is held."""
        job = self.jobs[held.job_id]
        match verb:
            case "complete":
                self._end(job, "succeeded")
            case "cancel_claimed":
                self._end(job, "cancelled")
            case "bury":
                self._die(job)
            case "fail":
                self._put_back(job, "failed", delay)
            case "crash" | "crash_alone":
                self._crash(job, delay, alone=verb == "crash_alone")
            case _:
                job.attempt -= 1
                job.run_at = self.now + delay
                ending = "snoozed" if verb == "snooze" else "released"
                job.leave("later" if delay > timedelta(0) else "queued", ending)

    def why_refused(self, held: ReferenceLease) -> str:
        job = self.jobs[held.job_id]
        if job.token > held.token:
            return "token_mismatch"
        if job.state == "cancelled":
            return "cancelled"
        return "settled" if held.token in job.ended_tokens else "gone"

    def outcome(self, held: ReferenceLease) -> str:
        """The outcome of a lease: still held, how it ended, or no trace of it."""
        job = self.jobs[held.job_id]
        return "running" if self.holds(held) else job.ended.get(held.claim, "gone")

    def reap(self) -> set[int]:
        """Take back what has run out; a crash is a failure without a report."""
        late = [job for job in self.jobs.values() if job.lease_until and job.lease_until < self.now]
        for job in late:
            job.crashes += 1
            self._put_back(job, "expired", crash_delay(job.crashes))
        return {job.id for job in late}

    def promote(self) -> int:
        due = [job for job in self.jobs.values() if job.state == "later" and job.run_at <= self.now]
        for job in due:
            job.state = "queued"
        return len(due)

    def cancel(self, job_id: int) -> bool:
        """Whether it could be; twice is once."""
        job = self.jobs[job_id]
        if job.state in (*WAITING, "running"):
            self._end(job, "cancelled")
        return job.state == "cancelled"

    def retry_now(self, job_id: int) -> bool:
        job = self.jobs[job_id]
        if job.state not in WAITING:
            return False
        job.state = "queued"
        return True

    def replay(self, job_id: int) -> bool:
        job = self.jobs[job_id]
        if job.state != "dead":
            return False
        job.state, job.attempt, job.crashes = "queued", 0, 0
        if job.key is not None:
            name = self.keys.get((job.queue, job.key))
            if name is not None and name.job_id == job_id:
                self.keys[job.queue, job.key] = replace(name, until=None)
            else:
                job.key = None  # another job has it now
        return True

    def _put_back(self, job: Known, ending: str, delay: timedelta) -> None:
        if job.attempt >= job.max_attempts:
            self._die(job)
        else:
            job.run_at = self.now + delay
            job.leave("later", ending)

    def _crash(self, job: Known, delay: timedelta, *, alone: bool) -> None:
        """Its worker survived. A job alone is dead with attempts left: one such crash is allowed here."""
        job.crashes += 1
        if alone:
            self._die(job)
        else:
            self._put_back(job, "failed", delay)

    def _die(self, job: Known) -> None:
        job.leave("dead", "dead")
        self._lapse(job)

    def _end(self, job: Known, state: str) -> None:
        job.leave(state, state)
        self._lapse(job)

    def _lapse(self, job: Known) -> None:
        """The job is over: from now its key lives for its window."""
        if job.key is None:
            return
        name = self.keys.get((job.queue, job.key))
        if name is not None and name.job_id == job.id:
            self.keys[job.queue, job.key] = replace(name, until=self.now + KEY_FOR)


def crash_delay(crashes: int) -> timedelta:
    """Nothing the first time, then one second and doubling, up to five minutes."""
    if crashes <= 1:
        return timedelta(0)
    return min(timedelta(seconds=2 ** min(crashes - 2, 20)), CRASH_DELAY_MAX)
