"""Schedules in SQL: set, fire by compare-and-set, pause, trigger, backfill; occurrences are their lineage."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.types.json import Jsonb

from faultline.errors import BadName, InputError, JobNotFound, OutOfBounds, WrongState
from faultline.store import calls
from faultline.watchdog.firings import firing_of, next_of
from tests.support import claim_one, state_of

MINUTE = timedelta(minutes=1)


def set_schedule(store, name="tick", **spec):
    spec = {"every": "5 minutes", **spec} if not {"cron", "at"} & set(spec) else spec
    return store.run(calls.set_schedule({"name": name, "task": "report", **spec}))


def shown(store, name="tick"):
    (found,) = store.run(calls.list_schedules(name))
    return found


def tick(store):
    """One turn of a watchdog; gives what was fired."""
    found = store.run(calls.due_schedules(timedelta(0)))
    store.run(calls.compute_next([next_of(due) for due in found if due.next_at is None]))
    return store.run(calls.fire([firing_of(due) for due in found if due.next_at is not None]))


def history(store, name="tick"):
    return store.run(calls.list_occurrences(name))


def active_jobs(db):
    return db.execute("select count(*) from faultline.active").fetchone()[0]


def test_a_period_is_counted_from_its_making_and_each_occurrence_has_one_job(store, clock, db):
    made = set_schedule(store)
    assert made[0] == "new"
    first = shown(store)
    assert first.next_at == first.starts_at + 5 * MINUTE

    assert tick(store) == []
    clock.advance(minutes=5, seconds=1)
    (fired,) = tick(store)
    assert (fired.name, fired.state, fired.jobs, fired.queue) == ("tick", "fired", 1, "default")
    assert tick(store) == []

    (noted,) = history(store)
    assert (noted.at, noted.how, noted.state) == (first.next_at, "due", "queued")
    assert shown(store).next_at == first.next_at + 5 * MINUTE
    assert store.run(calls.occurrence_of(noted.job_id))[0][:3] == ("tick", first.next_at, "due")
    assert store.run(calls.get(noted.job_id)).task == "report"


def test_two_watchdogs_that_saw_the_same_time_fire_it_once(store, clock, db):
    set_schedule(store)
    clock.advance(minutes=5)
    asked = [firing_of(due) for due in store.run(calls.due_schedules(timedelta(0)))]

    assert [one.jobs for one in store.run(calls.fire(asked))] == [1]
    assert store.run(calls.fire(asked)) == []
    assert active_jobs(db) == 1


def test_a_schedule_that_changed_meanwhile_is_not_fired(store, clock, db):
    set_schedule(store)
    clock.advance(minutes=5)
    asked = [firing_of(due) for due in store.run(calls.due_schedules(timedelta(0)))]
    assert set_schedule(store, task="other")[0] == "changed"

    assert store.run(calls.fire(asked)) == []
    assert [one.jobs for one in tick(store)] == [1]
    assert db.execute("select task from faultline.active").fetchall() == [("other",)]


def test_a_locked_schedule_is_left_to_its_holder(store, clock, database):
    set_schedule(store)
    set_schedule(store, "tock")
    clock.advance(minutes=5)
    with psycopg.connect(database) as other:
        other.execute("select from faultline.schedules where name = 'tick' for no key update")
        assert [one.name for one in tick(store)] == ["tock"]
    assert [one.name for one in tick(store)] == ["tick"]


def test_the_next_time_moves_with_the_jobs_or_not_at_all(store, clock, db):
    set_schedule(store)
    before = shown(store).next_at
    clock.advance(minutes=5)
    asked = [firing_of(due) for due in store.run(calls.due_schedules(timedelta(0)))]
    with pytest.raises(psycopg.errors.RaiseException), db.transaction():
        db.execute("select * from faultline.fire(%s)", [Jsonb(asked)])
        db.execute("do $$ begin raise exception 'crash'; end $$")
    assert (shown(store).next_at, active_jobs(db), history(store)) == (before, 0, [])
    assert [one.jobs for one in tick(store)] == [1]


@pytest.mark.parametrize(
    ("missed", "expected"), [("skip", []), ("once", [0]), ("all", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])]
)
def test_what_was_missed_for_an_hour_is_enqueued_as_asked(store, clock, missed, expected):
    set_schedule(store, missed=missed)
    first = shown(store).next_at
    clock.advance(minutes=63, seconds=30)
    tick(store)

    assert [round((one.at - first) / (5 * MINUTE)) for one in reversed(history(store))] == expected
    assert {one.how for one in history(store)} <= {"missed"}
    assert shown(store).next_at == first + 60 * MINUTE


def test_all_has_a_bound_and_the_present_is_never_missed(store, clock):
    set_schedule(store, every="10 seconds", missed="all")
    clock.advance(hours=3)
    tick(store)
    found = history(store)
    more = store.run(calls.list_occurrences("tick", found[-1].at, 1000))
    how = [one.how for one in [*found, *more]]
    assert how.count("missed") == 100
    assert how.count("due") in (6, 7)


def test_one_moment_ends_its_schedule(store, clock):
    when = store.run(calls.list_schedules())
    assert when == []
    moment = set_schedule(store, every="1 hour")[3] + MINUTE
    assert set_schedule(store, "once", at=moment)[2] == moment
    clock.advance(minutes=2)
    assert [one.jobs for one in tick(store)] == [1]
    assert (shown(store, "once").state, shown(store, "once").next_at) == ("ended", None)
    clock.advance(minutes=2)
    assert tick(store) == []


def test_a_cron_text_gets_its_next_time_from_a_watchdog(store, clock):
    set_schedule(store, cron="0 3 * * *", time_zone="Europe/Berlin")
    assert shown(store).next_at is None
    tick(store)
    assert (shown(store).state, shown(store).next_at.astimezone(UTC).minute) == ("active", 0)


def test_a_bad_cron_text_is_marked_and_others_go_on(store, clock, db):
    set_schedule(store, "bad", cron="0 25 * * *")
    set_schedule(store, "nowhere", cron="0 3 * * *", time_zone="Mars/Olympus")
    set_schedule(store)
    tick(store)
    assert "hour goes from 0 to 23" in shown(store, "bad").error
    assert "there is no time zone" in shown(store, "nowhere").error
    assert shown(store, "bad").state == "failing"
    clock.advance(minutes=5)
    assert [one.name for one in tick(store)] == ["tick"]

    db.execute("update faultline.schedules set time_zone = 'UTC' where name = 'nowhere'")
    clock.advance(minutes=1)
    tick(store)
    assert (shown(store, "nowhere").state, shown(store, "nowhere").error) == ("active", None)


def test_a_zone_that_goes_away_still_has_the_time_that_was_computed(store, clock, db):
    """Case T5: the zone is removed from tzdata."""
    set_schedule(store, cron="* * * * *", time_zone="Europe/Berlin")
    tick(store)
    db.execute("update faultline.schedules set time_zone = 'Europe/Gone'")
    clock.advance(minutes=1)
    (fired,) = tick(store)
    assert (fired.jobs, shown(store).next_at) == (1, None)
    assert "there is no time zone" in shown(store).error


def test_an_overlap_is_skipped_while_the_job_before_has_not_ended(store, clock):
    set_schedule(store, overlap="skip")
    clock.advance(minutes=5)
    assert [(one.jobs, one.skipped) for one in tick(store)] == [(1, 0)]
    clock.advance(minutes=5)
    assert [(one.jobs, one.skipped) for one in tick(store)] == [(0, 1)]
    store.run(calls.complete(claim_one(store), "null"))
    clock.advance(minutes=5)
    assert [(one.jobs, one.skipped) for one in tick(store)] == [(1, 0)]
    assert [one.how for one in history(store)] == ["due", "skipped", "due"]


def test_an_overlap_cancels_the_job_before_without_waiting_for_its_lock(store, clock, database):
    set_schedule(store, overlap="cancel")
    set_schedule(store, "other")
    clock.advance(minutes=5)
    tick(store)
    running = history(store)[0].job_id
    clock.advance(minutes=5)
    with psycopg.connect(database) as other:
        other.execute("select from faultline.active where id = %s for update", [running])
        told = {one.name: one.state for one in tick(store)}
    assert told == {"tick": "busy", "other": "fired"}
    assert len(history(store)) == 1

    clock.advance(seconds=1)
    (fired,) = tick(store)
    assert (fired.name, fired.state, fired.cancelled) == ("tick", "fired", [running])
    assert state_of(store, running) == "cancelled"
    assert len(history(store)) == 2


def test_jitter_puts_a_job_off_by_less_than_it(store, clock, db):
    set_schedule(store, jitter="2 minutes")
    due = shown(store).next_at
    clock.advance(minutes=5)
    tick(store)
    (run_at,) = db.execute(
        "select run_at from faultline.later union all select created_at from faultline.active"
    ).fetchone()
    assert due <= run_at < due + 2 * MINUTE


def test_a_paused_schedule_is_silent_and_goes_on_from_now(store, clock):
    set_schedule(store)
    first = shown(store).next_at
    store.run(calls.pause_schedule("tick"))
    clock.advance(minutes=23)
    assert tick(store) == []
    assert shown(store).state == "paused"

    store.run(calls.resume_schedule("tick"))
    assert (shown(store).state, shown(store).next_at) == ("active", first + 20 * MINUTE)
    assert tick(store) == []


def test_a_schedule_is_triggered_also_while_it_is_paused(store, clock):
    set_schedule(store, args='{"a": 1}')
    store.run(calls.pause_schedule("tick"))
    job_id, queue, _ = store.run(calls.trigger_schedule("tick"))
    assert queue == "default"
    assert store.run(calls.get(job_id)).args == {"a": 1}
    assert [one.how for one in history(store)] == ["triggered"]


def test_a_backfill_makes_a_job_for_each_past_time_that_has_none(store, clock):
    set_schedule(store)
    clock.advance(minutes=5)
    tick(store)
    now = shown(store)
    times = [now.next_at - n * 5 * MINUTE for n in (1, 2, 3)]

    seen = store.run(calls.backfill("tick", now.revision, times, preview=True))
    assert [one.is_new for one in seen] == [True, True, False]
    made = store.run(calls.backfill("tick", now.revision, times, preview=False))
    assert [one.is_new for one in made] == [True, True, False]
    again = store.run(calls.backfill("tick", now.revision, times, preview=False))
    assert [one.is_new for one in again] == [False] * 3
    assert [one.job_id for one in again] == [one.job_id for one in made]
    assert {one.how for one in history(store)} == {"due", "backfilled"}


def test_a_backfill_is_for_the_past_of_this_revision(store, clock):
    set_schedule(store)
    now = shown(store)
    with pytest.raises(OutOfBounds, match="times that have passed"):
        store.run(calls.backfill("tick", now.revision, [now.next_at], preview=False))
    with pytest.raises(WrongState, match="has changed"):
        store.run(calls.backfill("tick", now.revision + 1, [], preview=False))
    with pytest.raises(OutOfBounds, match="at most 1000"):
        store.run(calls.backfill("tick", now.revision, [now.moment] * 1001, preview=False))


def test_a_firing_never_goes_back(store, clock, db):
    set_schedule(store)
    clock.advance(minutes=5)
    (asked,) = [firing_of(due) for due in store.run(calls.due_schedules(timedelta(0)))]
    for wrong in (
        {"next": asked["due"]},
        {"on_time": ["2001-01-01T00:00:00Z"]},
        {"on_time": ["2101-01-01T00:00:00Z"]},
    ):
        with pytest.raises(OutOfBounds, match="goes forward"):
            store.run(calls.fire([{**asked, **wrong}]))
    with pytest.raises(OutOfBounds, match="At most 1000"):
        store.run(calls.fire([asked] * 1001))
    assert active_jobs(db) == 0


def test_a_changed_time_is_computed_from_now_and_the_same_stays(store, clock):
    set_schedule(store)
    clock.advance(minutes=4)
    before = shown(store)
    assert set_schedule(store)[0] == "same"
    assert shown(store).revision == before.revision
    assert set_schedule(store, every="1 minute")[0] == "changed"
    assert shown(store).next_at > shown(store).moment


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ({"every": "100 ms"}, InputError),
        ({"every": "2 years"}, InputError),
        ({"every": "1 mon -30 days 10 minutes"}, InputError),
        ({"cron": "* * * * *", "every": "1 minute"}, OutOfBounds),
        ({"cron": ""}, InputError),
        ({"cron": "* " * 200}, InputError),
        ({"at": datetime(2001, 1, 1, tzinfo=UTC)}, OutOfBounds),
        ({"time_zone": "UTC"}, OutOfBounds),
        ({"missed": "never"}, InputError),
        ({"overlap": "never"}, InputError),
        ({"jitter": "2 days"}, InputError),
        ({"jitter": "-1 s"}, InputError),
        ({"priority": 101}, InputError),
        ({"max_attempts": 0}, InputError),
        ({"name": "bad name"}, BadName),
        ({"queue": "bad name"}, BadName),
        ({"args": "[" * 70 + "]" * 70}, InputError),
        ({"args": '{"a": "%s"}' % ("x" * 65_536)}, InputError),
    ],
)
def test_bad_input_is_refused_by_name(store, spec, error):
    with pytest.raises(error):
        set_schedule(store, **spec)
    assert store.run(calls.list_schedules()) == []


def test_a_schedule_that_is_not_there_is_named(store):
    for call in (calls.pause_schedule, calls.resume_schedule, calls.delete_schedule, calls.trigger_schedule):
        with pytest.raises(JobNotFound, match="there is no schedule 'nope'"):
            store.run(call("nope"))


def test_a_deleted_schedule_leaves_its_jobs_and_their_lineage(store, clock):
    set_schedule(store)
    clock.advance(minutes=5)
    tick(store)
    store.run(calls.delete_schedule("tick"))
    assert store.run(calls.list_schedules()) == []
    (noted,) = history(store)
    assert state_of(store, noted.job_id) == "queued"


def test_occurrences_are_pruned_with_the_ledger_in_bounded_batches(store, clock):
    set_schedule(store, missed="all")
    clock.advance(minutes=63)
    tick(store)
    assert store.run(calls.prune_occurrences()) == 0
    clock.advance(days=8)
    assert [store.run(calls.prune_occurrences(7)) for _ in range(3)] == [7, 5, 0]


def test_acts_are_recorded(store, clock):
    set_schedule(store)
    store.run(calls.pause_schedule("tick", "why not"))
    store.run(calls.pause_schedule("tick"))
    store.run(calls.resume_schedule("tick"))
    store.run(calls.trigger_schedule("tick"))
    store.run(calls.delete_schedule("tick"))
    verbs = [(act.verb, act.detail["schedule"], act.reason) for act in store.run(calls.acts())]
    assert verbs == [
        ("delete_schedule", "tick", None), ("trigger_schedule", "tick", None),
        ("resume_schedule", "tick", None), ("pause_schedule", "tick", "why not"),
        ("set_schedule", "tick", None),
    ]  # fmt: skip


def test_doctor_and_metrics_know_what_fails_and_what_is_late(store, clock, db):
    set_schedule(store, "bad", cron="never")
    set_schedule(store)
    tick(store)
    clock.advance(minutes=7)
    facts = store.run(calls.doctor())
    assert (facts.failing_schedules, list(facts.failing_names)) == (1, ["bad"])
    assert (facts.late_schedules, list(facts.late_names)) == (1, ["tick"])
    figures = {(one.name, *one.labels): one.value for one in store.run(calls.metrics())}
    assert (figures["schedules", "failing"], figures["schedules", "active"]) == (1, 1)
    assert 119 < figures["schedule_late_seconds",] < 125


def test_a_job_that_runs_for_more_than_twenty_periods_is_not_overlapped(store, clock):
    """What it lets skip does not push it out of the last twenty."""
    set_schedule(store, every="1 minute", overlap="skip")
    clock.advance(seconds=60)
    tick(store)
    claim_one(store, lease=timedelta(days=1))
    for _ in range(22):
        clock.advance(seconds=60)
        tick(store)
    assert len([one for one in history(store) if one.job_id is not None]) == 1


def test_two_triggers_in_one_microsecond_have_a_job_each(store, clock, db):
    set_schedule(store)
    db.execute(
        "create or replace function faultline.now() returns timestamptz language sql as "
        "$$ select '2030-01-01 00:00+00'::timestamptz $$"
    )
    made = [store.run(calls.trigger_schedule("tick")) for _ in range(3)]
    assert len({job_id for job_id, _, _ in made}) == 3
    assert [(at - made[0][2]) // timedelta(microseconds=1) for _, _, at in made] == [0, 1, 2]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from faultline.backfill('tick', 1, '{}')",
        "select * from faultline.backfill('tick', 1, null)",
        "select * from faultline.backfill('tick', 1, '[\"x\"]')",
        "select * from faultline.backfill('tick', 1, '[\"-infinity\"]')",
        "select * from faultline.backfill('tick', 1, '[\"1999-12-31T23:59Z\"]')",
        "select * from faultline.set_schedule('s2', 't', null, every => '1 minute')",
        "select * from faultline.sync_schedules(null, '{1}', '[]')",
        "select * from faultline.sync_schedules('a', '{{1},{2}}', '[]')",
        "select * from faultline.sync_schedules('a', '{1,2,3,4,5,6,7,8,9}', '[]')",
        "select * from faultline.sync_schedules('a', '{1000000000}', '[]')",
        "select * from faultline.sync_schedules('a', '{-1}', '[]')",
        "select * from faultline.sync_schedules('a', '{1,null}', '[]')",
    ],
)
def test_sql_about_schedules_is_refused_by_name(store, db, sql):
    set_schedule(store)
    with pytest.raises(psycopg.Error) as refused:
        db.execute(sql)
    assert refused.value.sqlstate == "LS005", refused.value
