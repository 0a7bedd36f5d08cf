"""Rules of keys against a small reference: random enqueues, claims, ends and hours."""

import random
from dataclasses import dataclass
from datetime import timedelta

import pytest

from faultline.store import calls
from tests.support import claim_many, new_job

HOUR = timedelta(hours=1)
RULES = ("while_queued", "while_unfinished", "throttle", "replace", "debounce")
STORED = """
select id, replace(args::text, ' ', '') from faultline.jobs where state in ('queued', 'running')
"""
FREE_ONLY = ("while_queued", "replace", "debounce")


@dataclass
class ModelJob:
    args: str
    free: bool = True
    begun: bool = False
    ended_at: float | None = None


class Model:
    """What the rules say, in the fewest words."""

    def __init__(self) -> None:
        self.jobs: dict[int, ModelJob] = {}
        self.names: dict[tuple[str, bool], tuple[int, timedelta]] = {}
        self.hour = 0.0

    def found(self, key: str, rule: str) -> int | None:
        job_id, kept = self.names.get((key, rule in FREE_ONLY), (None, None))
        if job_id is None:
            return None
        job = self.jobs[job_id]
        counts = {
            "while_queued": job.free,
            "replace": job.free and not job.begun,
            "debounce": job.free and not job.begun,
        }.get(rule, job.ended_at is None or self.hour <= job.ended_at + kept / HOUR)
        return job_id if counts else None

    def enqueued(self, key: str, rule: str, args: str, job_id: int) -> None:
        if job_id not in self.jobs:
            self.jobs[job_id] = ModelJob(args)
            self.names[key, rule in FREE_ONLY] = job_id, HOUR if rule == "throttle" else timedelta(0)
        elif rule in ("replace", "debounce"):
            self.jobs[job_id].args = args


@pytest.mark.parametrize("seed", range(4))
def test_random_uses_do_what_the_reference_says(store, clock, db, seed):
    chance, model, held = random.Random(seed), Model(), []
    for step in range(60):
        match chance.choice(["enqueue"] * 5 + ["claim"] * 2 + ["complete", "fail", "snooze", "hour"]):
            case "enqueue":
                key, rule, args = chance.choice("ab"), chance.choice(RULES), f'{{"n":{step}}}'
                wait = timedelta(seconds=1) if rule == "debounce" else None
                expected = model.found(key, rule)
                asked = new_job(key=key, key_rule=rule, key_for=HOUR, args=args, max_attempts=90, delay=wait)
                made = store.run(calls.enqueue_one(asked))
                assert (None if made.is_new else made.id) == expected, (step, key, rule)
                model.enqueued(key, rule, args, made.id)
            case "claim":
                store.run(calls.promote())
                for lease in claim_many(store, 1):
                    model.jobs[lease.job_id].free, model.jobs[lease.job_id].begun = False, True
                    held.append(lease)
            case "hour":
                clock.advance(HOUR / 2 + timedelta(seconds=2))
                model.hour += 0.5 + 2 / 3600
            case end if held:
                lease = held.pop(chance.randrange(len(held)))
                job = model.jobs[lease.job_id]
                if end == "complete":
                    store.run(calls.complete(lease, "null"))
                    job.ended_at = model.hour
                    clock.advance(seconds=1)
                    model.hour += 1 / 3600
                else:
                    is_failure = end == "fail"
                    store.run(calls.fail(lease, "", HOUR / 4) if is_failure else calls.snooze(lease, HOUR))
                    job.free = True
    stored = dict(db.execute(STORED))
    assert stored == {job_id: job.args for job_id, job in model.jobs.items() if job.ended_at is None}
