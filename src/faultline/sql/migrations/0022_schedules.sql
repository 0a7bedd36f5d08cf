-- Schedules: what is enqueued at which times; the occurrences that were enqueued; and the releases of apps whose code has schedules.
-- A plain job pays nothing for them: its tables have no new column, and no verb of a job reads these.

create domain faultline.schedule_name as text
  constraint a_schedule_name_is_made_like_a_task_name
    check (value ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$');

create domain faultline.app_name as text
  constraint an_app_name_is_made_like_a_task_name
    check (value ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$');

-- The numbers of 1.10.2, compared one by one: 1.9 is lower than 1.10. Empty: no release was named, which is lower than every other.
create domain faultline.release_numbers as bigint[]
  constraint a_release_has_at_most_8_numbers check (cardinality(value) <= 8 and array_position(value, null) is null)
  constraint a_release_number_goes_from_0_to_999999999 check (0 <= all (value) and 999999999 >= all (value));

create domain faultline.period as interval
  constraint a_period_is_from_1_second_to_366_days
    check (value >= interval '1 second' and value <= interval '366 days'
           and date_part('year', value) = 0 and date_part('month', value) = 0 and abs(date_part('day', value)) <= 366);

create domain faultline.spread as interval
  constraint a_jitter_is_from_0_to_1_day
    check (value >= interval '0' and value <= interval '1 day'
           and date_part('year', value) = 0 and date_part('month', value) = 0 and abs(date_part('day', value)) <= 1);

create sequence faultline.schedule_revisions;

create table faultline.schedules (
  name          faultline.schedule_name primary key,
  app           faultline.app_name,          -- of whose code it is; null: made by hand
  release       faultline.release_numbers,   -- the highest release that had it
  task          faultline.task_name not null,
  queue         faultline.queue_name not null,
  priority      faultline.rank not null,
  args          faultline.document_text not null
                constraint a_schedules_args_have_at_most_65536_bytes check (octet_length(args) <= 65536),
  max_attempts  faultline.attempt_budget not null,
  lease_for     faultline.lease_time,
  timeout       faultline.run_time,
  retry         jsonb,

  cron          text
                constraint a_cron_expression_has_1_to_200_characters check (char_length(cron) between 1 and 200),
  time_zone     text
                constraint a_time_zone_has_1_to_100_characters check (char_length(time_zone) between 1 and 100),
  every         faultline.period,
  at            faultline.moment,
  starts_at     timestamptz not null,        -- periods are counted from here
  jitter        faultline.spread not null default interval '0',
  missed        text not null default 'once'
                constraint what_was_missed_is_enqueued_never_once_or_all check (missed in ('skip', 'once', 'all')),
  overlap       text not null default 'allow'
                constraint an_overlap_is_allowed_or_skipped_or_cancels check (overlap in ('allow', 'skip', 'cancel')),

  revision      bigint not null default nextval('faultline.schedule_revisions'),   -- another after each change
  next_at       timestamptz,                 -- null: ended, or to be computed by a watchdog
  held_until    timestamptz,                 -- not tried again before: it could not be fired, or its next time not computed
  last_at       timestamptz,                 -- the last occurrence that was decided
  error         text,
  paused_at     timestamptz,
  paused_by     text
                constraint a_schedule_is_paused_by_a_person_or_by_a_release check (paused_by in ('person', 'release')),
  ended_at      timestamptz,
  created_at    timestamptz not null,
  changed_at    timestamptz not null,

  constraint a_schedule_has_one_of_cron_every_and_at check (num_nonnulls(cron, every, at) = 1),
  constraint a_cron_expression_has_a_time_zone_and_nothing_else_does check ((cron is null) = (time_zone is null)),
  constraint a_paused_schedule_says_by_whom check ((paused_at is null) = (paused_by is null)),
  constraint an_ended_schedule_has_no_next_time check (ended_at is null or next_at is null)
) with (fillfactor = 70);

create index schedules_due on faultline.schedules (greatest(next_at, held_until))
  where next_at is not null and paused_at is null;
create index schedules_uncomputed on faultline.schedules (name)
  where next_at is null and paused_at is null and ended_at is null;

-- From a schedule to its jobs, and from a job to its schedule. The primary key is what makes each occurrence enqueued once, also
-- where a backfill covers what was enqueued on time.
create table faultline.occurrences (
  schedule     text not null,
  at           timestamptz not null,
  job_id       bigint,                       -- null: decided not to be enqueued
  how          text not null
               constraint an_occurrence_is_due_missed_triggered_backfilled_or_skipped
               check (how in ('due', 'missed', 'triggered', 'backfilled', 'skipped')),
  decided_at   timestamptz not null,
  constraint an_occurrence_is_enqueued_once primary key (schedule, at)
);

create index occurrences_enqueued on faultline.occurrences (schedule, at) where job_id is not null;
create index occurrences_job on faultline.occurrences (job_id) where job_id is not null;
create index occurrences_decided on faultline.occurrences (decided_at);

-- The highest release of each app that has synced its schedules.
create table faultline.app_releases (
  app        faultline.app_name primary key,
  release    faultline.release_numbers not null,
  synced_at  timestamptz not null,
  login      text                            -- the role that syncs it: the first that was no operator; null: none yet
);

-- Apart from `workers`, whose rows change with each heartbeat.
create table faultline.worker_releases (
  worker   int primary key references faultline.workers (id) on delete cascade,
  app      faultline.app_name not null,
  release  faultline.release_numbers not null
);
