-- Settings of the installation, rounds, queues, lanes and workers.

create table faultline.migrations (
  number      int primary key,
  name        text not null,
  applied_at  timestamptz not null default clock_timestamp()
);

create table faultline.settings (
  only_row           boolean primary key default true
                     constraint there_is_one_row_of_settings check (only_row),
  base               bigint not null default 0,
  system_identifier  bigint not null,
  timeline           int not null,
  default_lease      faultline.lease_time not null default interval '15 seconds',
  ledger_retention   interval not null default interval '7 days'
                     constraint the_ledger_is_kept_for_an_hour_or_more check (ledger_retention >= interval '1 hour'),
  dead_retention     interval not null default interval '90 days'
                     constraint the_dead_are_kept_for_an_hour_or_more check (dead_retention >= interval '1 hour'),
  oldest_client      int not null default 1,
  functions          text not null default ''
);

-- The same as in record_server(): some servers do not give these two values.
do $$
begin
  insert into faultline.settings (system_identifier, timeline)
  select control.system_identifier, ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int
  from pg_control_system() as control;
exception when others then
  insert into faultline.settings (system_identifier, timeline) values (0, 1);
end;
$$;

-- Separate from settings, which every claim reads: this row changes each second. While an old transaction
-- keeps dead rows, a claim would read all its old versions.
create table faultline.rounds (
  only_row     boolean primary key default true
               constraint there_is_one_row_of_rounds check (only_row),
  round_at     timestamptz not null default '-infinity',
  hold_until   timestamptz not null default '-infinity',
  walked_at    timestamptz not null default '-infinity',
  leader       int,
  term         bigint not null default 0,
  leads_until  timestamptz not null default '-infinity'
) with (fillfactor = 10);

insert into faultline.rounds default values;

create table faultline.queues (
  name       faultline.queue_name primary key,
  paused_at  timestamptz,
  keep       faultline.keeping not null default 'full'
);

-- One queue at one priority. `paused` and `keep` are copies of the queue's values, so that a claim or a
-- completion reads one small row. `floor` and `top` are hints: correctness does not depend on them.
create table faultline.lanes (
  id            int generated always as identity primary key,
  queue         faultline.queue_name not null references faultline.queues (name),
  priority      smallint not null constraint a_lane_has_a_priority_from_minus_100_to_100
                check (priority between -100 and 100),
  paused        boolean not null default false,
  keep          faultline.keeping not null default 'full',
  floor         bigint not null default 0,
  candidate     bigint,
  candidate_at  timestamptz,
  top           bigint not null default 0,
  constraint a_queue_has_one_lane_a_priority unique (queue, priority)
) with (fillfactor = 50);

create table faultline.workers (
  id          int generated always as identity primary key,
  name        text not null
              constraint a_workers_name_is_1_to_200_characters check (char_length(name) between 1 and 200),
  host        text not null,
  pid         int not null,
  queues      text[] not null,
  jobs_max    int not null,
  version     text not null,
  started_at  timestamptz not null,
  seen_at     timestamptz not null,
  stopped_at  timestamptz
) with (fillfactor = 70);
