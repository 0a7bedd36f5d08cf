-- Every job that has not ended: due and running jobs in `active`, scheduled jobs in `later`, failed jobs in `dead`.

create sequence faultline.places;   -- ids, and places in a lane
create sequence faultline.tokens;   -- one number for each claim that found work

create table faultline.active (
  id            bigint primary key,
  pos           bigint not null,
  token         bigint not null default 0,
  created_at    timestamptz not null,
  lease_until   timestamptz,
  claimed_at    timestamptz,
  deadline_at   timestamptz,
  claim         uuid,
  lane          int not null,
  claimed_by    int,
  attempt       smallint not null default 0,
  max_attempts  smallint not null,
  crashes       smallint not null default 0,
  task          faultline.task_name not null,
  key           faultline.key_name,
  lease_for     faultline.lease_time,
  timeout       faultline.run_time,
  retry         jsonb,
  error         text,
  args          faultline.document not null,

  constraint a_running_job_is_leased
    check ((claim is null) = (lease_until is null)
       and (claim is null) = (deadline_at is null)
       and (claim is null) = (claimed_at is null)),
  constraint a_lease_ends_at_a_real_moment
    check (lease_until is null or isfinite(lease_until)),
  constraint a_token_only_grows_from_0_and_stays_under_2_to_the_62
    check (token between 0 and 4611686018427387903),
  constraint attempts_stay_within_their_budget
    check (attempt between 0 and max_attempts),
  constraint a_waiting_job_has_an_attempt_left
    check (claim is not null or attempt < max_attempts),
  constraint crashes_are_counted_from_0_to_10000
    check (crashes between 0 and 10000)
) with (
  -- The page has room for a second version of all its rows at once; a claim makes a row longer. At fillfactor 45, a twelfth
  -- of the claims of the smallest jobs and a quarter of all first beats were not HOT, and each job cost 20 bytes of WAL more.
  fillfactor = 33,
  toast_tuple_target = 1024,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0
);

-- The only index besides the primary key. Claims and heartbeats change no column of either index.
create index active_line on faultline.active (lane, pos);

create table faultline.later (
  id            bigint primary key,
  run_at        faultline.moment not null,
  token         bigint not null default 0,
  created_at    timestamptz not null,
  lane          int not null,
  attempt       smallint not null default 0,
  max_attempts  smallint not null,
  crashes       smallint not null default 0,
  task          faultline.task_name not null,
  key           faultline.key_name,
  lease_for     faultline.lease_time,
  timeout       faultline.run_time,
  retry         jsonb,
  error         text,
  args          faultline.document not null,

  -- The same checks as in `active`: without them, one damaged row would stop the promotion of all jobs.
  constraint a_token_only_grows_from_0_and_stays_under_2_to_the_62
    check (token between 0 and 4611686018427387903),
  constraint attempts_stay_within_their_budget
    check (attempt between 0 and max_attempts),
  constraint a_waiting_job_has_an_attempt_left
    check (attempt < max_attempts),
  constraint crashes_are_counted_from_0_to_10000
    check (crashes between 0 and 10000)
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index later_run_at on faultline.later (run_at);

create table faultline.dead (
  id            bigint primary key,
  died_at       timestamptz not null,
  token         bigint not null default 0,
  created_at    timestamptz not null,
  lane          int not null,
  attempt       smallint not null,
  max_attempts  smallint not null,
  crashes       smallint not null,
  task          faultline.task_name not null,
  key           faultline.key_name,
  lease_for     faultline.lease_time,
  timeout       faultline.run_time,
  retry         jsonb,
  reason        text not null,
  error         text,
  args          faultline.document not null,

  constraint a_token_only_grows_from_0_and_stays_under_2_to_the_62
    check (token between 0 and 4611686018427387903)
);

create index dead_died_at on faultline.dead (died_at);
