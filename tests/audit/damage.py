"""Damage: what no verb of ours does, done to a database by hand, a case for each check of the audit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from faultline.audit import Effects
from faultline.store.pool import Store
from tests.audit import lives, wounds
from tests.support import Clock, enqueue

Db = psycopg.Connection[Any]


@dataclass(frozen=True)
class Damage:
    """A life, and what is then done to its job; `%(job)s` in the SQL is its id."""

    check: str
    life: lives.Life
    sql: tuple[str, ...] = ()
    sure: bool = True
    effects: Effects | str | None = None
    acknowledged: bool = False
    after: Callable[[Clock], None] = field(default=lambda clock: None)

    @property
    def options(self) -> dict[str, Any]:
        return {"effects": self.effects} if self.effects else {}

    def do(self, db: Db, store: Store, clock: Clock) -> int:
        """Live, be damaged, and say which job it was."""
        job_id = self.life(store, clock)
        for statement in self.sql:
            db.execute(statement.encode(), {"job": job_id})
        self.after(clock)
        return job_id


def with_a_key(store: Store, clock: Clock) -> int:
    return enqueue(store, key="mine")


DAMAGES: Final = (
    Damage("a_success_has_the_newest_token", lives.succeeds, (wounds.REFUSED_BY_ANOTHER,)),
    Damage("a_token_is_the_newest", lives.waits_for_its_retry, (wounds.REFUSED_BY_ANOTHER,)),
    Damage("a_token_is_the_newest", lives.runs, (wounds.ENDED_YET_RUNNING,)),
    Damage("an_ended_job_stays_ended", lives.is_cancelled_while_it_runs, (wounds.QUEUED_AGAIN,)),
    Damage("an_ended_job_stays_ended", lives.is_cancelled_while_it_runs, (wounds.DEAD_AS_WELL,)),
    Damage("an_ended_job_stays_ended", lives.is_cancelled_while_it_runs, (wounds.A_LATER_LEASE,)),
    Damage(
        "an_ended_job_stays_ended", lives.is_cancelled_while_it_runs,
        (wounds.ENDS_ANYWHERE, wounds.A_SECOND_END),
    ),
    Damage(
        "a_lease_is_whole", lives.runs, ("update faultline.active set token = 0 where id = %(job)s",),
    ),
    Damage(
        "a_lease_ends_once", lives.succeeds_at_the_third_try,
        ("update faultline.ledger as other set claim = success.claim from faultline.ledger as success"
         " where other.job_id = %(job)s and success.job_id = %(job)s and success.slot = 0",),
    ),
    Damage(
        "a_dead_job_stays_dead", lives.is_replayed_and_runs,
        ("update faultline.active set crashes = 1 where id = %(job)s",),
    ),
    Damage(
        "attempts_and_crashes_stay_in_budget", lives.waits_for_its_retry,
        ("update faultline.later set crashes = 2 where id = %(job)s",),
    ),
    Damage(
        "attempts_and_crashes_stay_in_budget", lives.is_replayed_and_runs,
        ("update faultline.active set crashes_alone = 1 where id = %(job)s",),
    ),
    Damage(
        "attempts_and_crashes_stay_in_budget", lives.succeeds,
        ("update faultline.ledger set attempt = 6 where job_id = %(job)s",),
    ),
    Damage(
        "attempts_and_crashes_stay_in_budget", lives.waits_for_its_retry,
        ("alter table faultline.later drop constraint if exists a_waiting_job_has_an_attempt_left",
         "update faultline.later set attempt = max_attempts where id = %(job)s"),
    ),
    Damage(
        "a_row_is_what_the_ledger_says", lives.waits_for_its_retry,
        ("update faultline.later set token = token + 1 where id = %(job)s",),
    ),
    Damage(
        "a_row_is_what_the_ledger_says", lives.waits,
        ("update faultline.active set attempt = 1 where id = %(job)s",),
    ),
    Damage(
        "a_success_has_the_newest_token", lives.crashes_and_succeeds,
        ("update faultline.ledger set token = token + 9, slot = slot + 9"
         " where job_id = %(job)s and outcome = 'expired'",),
    ),
    Damage(
        "a_success_had_a_lease", lives.succeeds,
        ("update faultline.ledger set claim = null where job_id = %(job)s",),
    ),
    Damage("a_job_succeeds_once", lives.succeeds, (wounds.ENDS_ANYWHERE, wounds.SECOND_SUCCESS)),
    Damage("a_job_stands_in_one_place", lives.waits, (wounds.ALSO_LATER,)),
    Damage(
        "a_lease_is_whole", lives.runs,
        (wounds.HALF_LEASES, "update faultline.active set lease_until = null where id = %(job)s"),
    ),
    Damage("a_lease_ends_once", lives.runs, (wounds.ENDED_YET_RUNNING,)),
    Damage(
        "leases_follow_each_other", lives.crashes_and_succeeds,
        ("update faultline.ledger set claimed_at = claimed_at - interval '1 hour'"
         " where job_id = %(job)s and slot = 0",),
        sure=False,
    ),
    Damage("an_ended_job_stays_ended", lives.succeeds, (wounds.QUEUED_AGAIN,)),
    Damage(
        "a_dead_job_stays_dead", lives.is_replayed_and_waits,
        ("update faultline.active set attempt = 1 where id = %(job)s",),
    ),
    Damage(
        "a_token_is_given_once", lives.crashes_and_succeeds,
        ("update faultline.ledger as success set token = expired.token from faultline.ledger as expired"
         " where success.job_id = %(job)s and success.slot = 0"
         " and expired.job_id = %(job)s and expired.slot <> 0",),
    ),
    Damage(
        "a_token_is_the_newest", lives.waits_for_its_retry,
        ("update faultline.later set token = 0 where id = %(job)s",),
    ),
    Damage(
        "a_token_was_issued", lives.succeeds,
        ("update faultline.ledger set token = 1::bigint << 50 where job_id = %(job)s",),
    ),
    Damage(
        "an_open_job_is_somewhere", lives.waits_for_its_retry,
        ("delete from faultline.later where id = %(job)s",),
    ),
    Damage(
        "an_open_job_is_somewhere", lives.dies_of_failures,
        ("delete from faultline.dead where id = %(job)s",),
    ),
    Damage(
        "a_living_key_names_a_job", with_a_key,
        ("delete from faultline.active where id = %(job)s",),
    ),
    Damage("a_job_has_a_lane", lives.waits, ("update faultline.active set lane = 99 where id = %(job)s",)),
    Damage(
        "an_acknowledged_job_is_somewhere", lives.waits,
        ("delete from faultline.active where id = %(job)s",),
        acknowledged=True,
    ),
    Damage(
        "attempts_and_crashes_stay_in_budget", lives.dies_of_failures,
        ("update faultline.dead set max_attempts = 2 where id = %(job)s",),
    ),
    Damage(
        "entries_follow_each_other", lives.succeeds_at_the_third_try,
        ("update faultline.ledger set attempt = 2 where job_id = %(job)s and slot = 0",),
    ),
    Damage(
        "entries_follow_each_other", lives.crashes_and_succeeds,
        ("update faultline.ledger set crashes = 0 where job_id = %(job)s",),
    ),
    Damage(
        "a_row_is_what_the_ledger_says", lives.waits_for_its_retry,
        ("update faultline.later set crashes = 1 where id = %(job)s",),
    ),
    Damage(
        "a_row_is_what_the_ledger_says", lives.dies_of_failures,
        ("delete from faultline.ledger where job_id = %(job)s",),
    ),
    Damage(
        "a_job_keeps_its_words", lives.waits_for_its_retry,
        ("update faultline.later set task = 'another' where id = %(job)s",),
    ),
    Damage("nothing_runs_past_its_lease", lives.runs, after=lambda clock: clock.advance(hours=1)),
    Damage(
        "nothing_runs_past_its_lease", lives.runs,
        ("update faultline.active set lease_until = now() - interval '1 hour' where id = %(job)s",
         "update faultline.rounds set hold_until = now() + interval '1 hour'"),
        sure=False,
    ),
    Damage(
        "what_is_due_is_lined_up", lives.waits_for_its_retry,
        after=lambda clock: clock.advance(hours=1), sure=False,
    ),
    Damage(
        "an_effect_is_its_owners", lives.crashes_and_succeeds,
        (wounds.EFFECTS, wounds.EFFECT, "update effects set token = token - 1"),
        effects="effects",
    ),
    Damage(
        "an_effect_is_its_owners", lives.crashes_and_succeeds,
        (wounds.EFFECTS, wounds.EFFECT, "update effects set claim = gen_random_uuid()"),
        effects="public.effects",
    ),
    Damage(
        "an_effect_is_its_owners", lives.crashes_and_succeeds,
        (wounds.EFFECTS, wounds.EFFECT, "update effects set attempt = 1"),
        effects="effects",
    ),
    Damage(
        "an_effect_is_there_once", lives.succeeds, (wounds.EFFECTS, wounds.EFFECT, wounds.EFFECT),
        effects="effects",
    ),
    Damage(
        "an_effect_came_with_a_success", lives.is_cancelled_while_it_runs, (wounds.EFFECTS, wounds.EFFECT),
        effects="effects",
    ),
    Damage(
        "an_effect_came_with_a_success", lives.waits_for_its_retry,
        (wounds.EFFECTS, "insert into effects values (%(job)s, 1)"),
        effects="effects",
    ),
    Damage(
        "a_success_left_its_effect", lives.succeeds, (wounds.EFFECTS,),
        effects=Effects("effects", tasks=["test_task"]),
    ),
    Damage(
        "an_effect_has_a_job", lives.succeeds,
        (wounds.EFFECTS, wounds.EFFECT, "delete from faultline.ledger where job_id = %(job)s"),
        effects="effects",
    ),
)  # fmt: skip
