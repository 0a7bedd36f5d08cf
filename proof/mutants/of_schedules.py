"""Mutants of schedules: each occurrence once, whatever crashes; times on the wall clock; releases."""

from proof.mutants.mutant import Mutant, Patch, sql

RULES = "tests/sql/test_schedules.py"
SYNC = "tests/sql/test_schedule_sync.py"
CHORE = "tests/watchdog/test_scheduling.py"
CLOCKS = "tests/schedules/test_wall_clock.py"

MUTANTS = (
    Mutant(
        "a schedule is fired whatever its next time is", "G1",
        f"{RULES}::test_two_watchdogs_that_saw_the_same_time_fire_it_once",
        (
            sql("fire", "mine.next_at = asked.due and mine.revision = asked.revision and ", ""),
            sql("fire", "once do nothing", "once do update set job_id = excluded.job_id"),
        ),
    ),
    Mutant(
        "the next time of a schedule does not move with its jobs", "G1",
        f"{RULES}::test_two_watchdogs_that_saw_the_same_time_fire_it_once",
        (
            sql("fire", "    set next_at = asked.next,\n", "    set next_at = row.next_at,\n"),
            sql("fire", "once do nothing", "once do update set job_id = excluded.job_id"),
        ),
    ),
    Mutant(
        "a firing goes back", "G1", f"{RULES}::test_a_firing_never_goes_back",
        (sql("fire", "    where asked.next <= asked.due or ", "    where "),),
    ),
    Mutant(
        "a schedule that was changed is fired by its old times", "G1",
        f"{RULES}::test_a_schedule_that_changed_meanwhile_is_not_fired",
        (sql("fire", " and mine.revision = asked.revision", ""),),
    ),
    Mutant(
        "a watchdog waits for a schedule that another fires", "G8",
        f"{RULES}::test_a_locked_schedule_is_left_to_its_holder",
        (sql("fire", "for no key update of mine skip locked);", "for no key update of mine nowait);"),),
        red_by=("LockNotAvailable", "ServerUnavailable"),
    ),
    Mutant(
        "an occurrence that was enqueued is backfilled again", "G1",
        f"{RULES}::test_a_backfill_makes_a_job_for_each_past_time_that_has_none",
        (
            sql("enqueue_occurrences", "once do nothing", "once do update set job_id = excluded.job_id"),
        ),
    ),
    Mutant(
        "a backfill takes times that are to come", "G1",
        f"{RULES}::test_a_backfill_is_for_the_past_of_this_revision",
        (sql("backfill", "given.at is null or not given.at < least(moment, held.next_at)", "given.at is null"),),
    ),
    Mutant(
        "what fell into a pause is made up for", "G1",
        f"{RULES}::test_a_paused_schedule_is_silent_and_goes_on_from_now",
        (sql("resume_schedule", "case when mine.next_at > moment then mine.next_at\n", "case when mine.next_at is not null then mine.next_at\n"),),
    ),
    Mutant(
        "a job that is locked stops the schedules beside its own", "G8",
        f"{RULES}::test_an_overlap_cancels_the_job_before_without_waiting_for_its_lock",
        (sql("fire", "    exception when lock_not_available then\n", "    exception when division_by_zero then\n"),),
        red_by=("ServerUnavailable", "LockNotAvailable"),
    ),
    Mutant(
        "an overlap is enqueued though it is to be skipped", "G1",
        f"{RULES}::test_an_overlap_is_skipped_while_the_job_before_has_not_ended",
        (sql("fire", " and mine.name <> all (skipping)", ""),),
    ),
    Mutant(
        "all that was missed has no bound", "G8",
        f"{RULES}::test_all_has_a_bound_and_the_present_is_never_missed",
        (Patch("watchdog/firings.py", "MADE_UP_MAX: Final = 100", "MADE_UP_MAX: Final = 120"),),
    ),
    Mutant(
        "a bad cron text stops the schedules beside it", "G13",
        f"{RULES}::test_a_bad_cron_text_is_marked_and_others_go_on",
        (Patch("watchdog/firings.py", '    except Exception as error:\n        return {**told, "error": _reason(error)}\n', ""),
         Patch("watchdog/firings.py", "        after = due.moment if due.last_at is None else max(due.moment, due.last_at)\n", "        pass\n    finally:\n        after = due.moment if due.last_at is None else max(due.moment, due.last_at)\n")),
    ),
    Mutant(
        "one bad schedule stops the others", "G13",
        f"{CHORE}::test_one_bad_row_does_not_stop_the_others",
        (Patch("watchdog/scheduling.py", "            fired = await self._fire_singly(firings)  # one bad row must not stop the others\n", "            fired = []\n"),),
    ),
    Mutant(
        "workers are not woken for a schedule's jobs", "G8",
        f"{CHORE}::test_all_that_is_due_is_fired_in_one_turn_and_workers_are_woken",
        (Patch("watchdog/scheduling.py", "        if queues:\n", "        if False:\n"),),
    ),
    Mutant(
        "a lower release changes schedules", "G1", f"{SYNC}::test_a_lower_release_changes_nothing",
        (sql("sync_schedules", "  if ours < highest then", "  if false then"),),
    ),
    Mutant(
        "a new release pauses what an older one still runs", "G1",
        f"{SYNC}::test_what_the_newest_release_lacks_goes_on_while_an_older_one_runs",
        (sql("pause_absent", "older.app = highest.app and older.release < highest.release", "false"),),
    ),
    Mutant(
        "an app takes the schedules of another", "G1",
        f"{SYNC}::test_apps_do_not_take_each_others_schedules",
        (sql("sync_schedules", "      if found and owner <> sync_schedules.app then", "      if false then"),),
    ),
    Mutant(
        "a fixed time in the gap is passed over", "G1", f"{CLOCKS}::test_a_fixed_time_runs_once_a_day_whatever_the_clocks_do",
        (Patch("schedules/wall_clock.py", "    return _change_between(before, moment, zone)\n\n\ndef _wall", "    return before\n\n\ndef _wall"),),
    ),
    Mutant(
        "a fixed time runs in both repeated hours", "G1",
        f"{CLOCKS}::test_a_fixed_time_runs_once_a_day_whatever_the_clocks_do",
        (Patch("schedules/cron.py", "wall_clock.next_fixed if self._is_fixed else", "wall_clock.next_repeated if True else"),),
    ),
    Mutant(
        "a wildcard runs in the first of two repeated hours alone", "G1",
        f"{CLOCKS}::test_a_wildcard_runs_whenever_the_wall_clock_fits",
        (Patch("schedules/cron.py", "wall_clock.next_fixed if self._is_fixed else", "wall_clock.next_fixed if True else"),),
    ),
    Mutant(
        "a search for a time that never comes has no horizon", "G8",
        f"{CLOCKS}::test_times_that_daylight_saving_always_skips_are_looked_for_up_to_a_horizon",
        (Patch("schedules/wall_clock.py", "        if moment > end:\n            return None\n", ""),),
    ),
    Mutant(
        "an expression that never occurs is taken", "G13",
        f"{CLOCKS}::test_times_that_daylight_saving_always_skips_are_looked_for_up_to_a_horizon",
        (Patch("schedules/timing.py", "    if cron.next_after(datetime.now(UTC)) is None:\n", "    if False:\n"),),
    ),
    Mutant(
        "only what is refused by name is noted on its schedule", "G13",
        f"{CHORE}::test_what_cannot_be_computed_stops_no_other_schedule",
        (Patch("watchdog/firings.py", "    except Exception as error:  # whatever", "    except InputError as error:  # whatever"),),
        red_by=("OverflowError",),
    ),
    Mutant(
        "next times are computed before what is due is fired", "G8",
        f"{CHORE}::test_what_is_due_is_fired_before_next_times_are_computed",
        (Patch("watchdog/scheduling.py", "            fired = await self._fire(ready) if ready else 0  # first", "            if uncomputed:\n                await self._compute(uncomputed[:COMPUTED])\n            fired = await self._fire(ready) if ready else 0  # first"),),
    ),
    Mutant(
        "a turn computes without a bound", "G8",
        f"{CHORE}::test_a_turn_computes_a_bounded_batch_without_suggestions",
        (Patch("watchdog/scheduling.py", "self._compute(uncomputed[:COMPUTED])", "self._compute(uncomputed)"),),
    ),
    Mutant(
        "a watchdog looks for suggestions", "G8",
        f"{CHORE}::test_a_turn_computes_a_bounded_batch_without_suggestions",
        (Patch("watchdog/firings.py", "        known_zone(due.time_zone or", "        str(due.time_zone or"),),
    ),
    Mutant(
        "an unknown zone is looked for each time", "G8",
        f"{CLOCKS}::test_a_zone_that_is_not_known_is_looked_for_once",
        (Patch("schedules/zones.py", "@lru_cache(maxsize=4096)\n", ""),),
    ),
    Mutant(
        "skipped occurrences push a running job out of the last twenty", "G1",
        f"{RULES}::test_a_job_that_runs_for_more_than_twenty_periods_is_not_overlapped",
        (sql("unfinished_jobs", " and noted.job_id is not null", ""),),
    ),
    Mutant(
        "any role syncs the schedules of any app", "G13",
        f"{SYNC}::test_an_app_belongs_to_the_first_role_that_syncs_it",
        (sql("sync_schedules", "  if not faultline.is_operator(session_user) then", "  if false then"),),
    ),
    Mutant(
        "a release has numbers without a bound", "G13",
        f"{RULES}::test_sql_about_schedules_is_refused_by_name",
        (sql("sync_schedules", "     or not (0 <= all (release) and 999999999 >= all (release)) then", "  then"),),
        red_by=("CheckViolation",),
    ),
    Mutant(
        "a backfill takes any moment", "G13",
        f"{RULES}::test_sql_about_schedules_is_refused_by_name",
        (sql("backfill", "::timestamptz::faultline.moment::timestamptz", "::timestamptz"),),
        red_by=("WrongState", "RaiseException"),
    ),
    Mutant(
        "a range begins at the edge of time", "G13",
        f"{CLOCKS}::test_a_range_at_the_edge_of_time_is_refused_by_name",
        (Patch("schedules/ranges.py", "            check_run_at(moment, name)\n", "            pass\n"),),
        red_by=("OverflowError",),
    ),
    Mutant(
        "two triggers in one microsecond share an occurrence", "G1",
        f"{RULES}::test_two_triggers_in_one_microsecond_have_a_job_each",
        (sql("trigger_schedule", "array[free]", "array[moment]"),),
        red_by=("NoDataFound",),
    ),
)  # fmt: skip
