-- Limits: at most so many leases at once, in total and for each key, and so many starts a second.
-- A slot is a row in `active`. A limited job waits in `later`, at the gate of its key, until a claim admits it; leaving `active`
-- by any verb frees the slot in the same commit. So there is no counter that could be wrong.

create domain faultline.limit_name as text
  constraint a_limit_is_named_by_1_to_128_letters_digits_dots_dashes
    check (value ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$');

create table faultline.limits (
  id          int generated always as identity primary key,
  name        faultline.limit_name not null,
  per_key     int constraint a_limit_per_key_is_from_1_to_1000000 check (per_key between 1 and 1000000),
  total       int constraint a_limit_in_total_is_from_1_to_1000000 check (total between 1 and 1000000),
  rate        float8 constraint a_rate_is_from_one_a_week_to_a_million_a_second
              check (rate between 1.0 / 604800 and 1000000),
  burst       int constraint a_burst_is_from_1_to_1000000 check (burst between 1 and 1000000),
  on_retry    text not null default 'yield'
              constraint a_job_that_waits_for_its_retry_yields_or_blocks check (on_retry in ('yield', 'block')),
  parent      int references faultline.limits (id)
              constraint a_limit_is_not_its_own_parent check (parent <> id),
  declared    jsonb,    -- as a worker declared it last: a change by hand stays until the declaration changes
  full_at     timestamptz not null default '-infinity',   -- when the bucket of the rate is full
  -- Hints that keep claims from reading dead rows. Every row that holds a slot has its place at or above `held_floor`: a floor that is too
  -- high would count too few, so it is raised only under the lock of this row.
  held_floor  bigint not null default 0,
  rest_until  timestamptz not null default '-infinity',   -- all gates were full: a claim looks at the freed ones only
  constraint a_limit_has_a_name_of_its_own unique (name),
  constraint a_rate_has_a_burst check ((rate is null) = (burst is null))
) with (fillfactor = 20);

create index limits_parent on faultline.limits (parent) where parent is not null;

-- The limit of a task, and where in the args its key stands; null for a limit without keys.
create table faultline.task_limits (
  task      faultline.task_name primary key,
  limit_id  int not null references faultline.limits (id),
  key_path  text[]
            constraint a_keys_path_has_1_to_8_parts check (key_path is null or cardinality(key_path) between 1 and 8),
  moved     boolean not null default false,  -- the jobs that the task had before have come under the limit
  old_path  text[]                           -- where their key stood, while they move
);

-- The lanes in which jobs of a limit have been. A claim that finds none of its queues here does nothing for limits.
-- `wait_floor` is a hint: no job waits before this place.
create table faultline.limited_lanes (
  queue         faultline.queue_name not null,
  lane          int not null references faultline.lanes (id) on delete cascade,
  limit_id      int not null references faultline.limits (id),
  wait_floor    bigint not null default 0,
  candidate     bigint,
  candidate_at  timestamptz,
  constraint a_limit_is_listed_once_a_lane primary key (queue, lane, limit_id)
) with (fillfactor = 50);

-- Null, which takes no space in a row, for all jobs without a limit.
-- `gate` is the hash of the job's key, 0 without one: two keys of one hash share a gate, which limits them more, never less.
alter table faultline.active add column limit_id int, add column gate bigint;
alter table faultline.dead   add column limit_id int, add column gate bigint;

-- `place` is the place at the gate: with it a job waits for a slot, without it for its moment. `holds` marks a job that keeps its
-- gate closed while it waits for its moment.
alter table faultline.later
  add column limit_id int, add column gate bigint, add column place bigint, add column holds boolean,
  add constraint a_job_at_a_gate_has_a_limit check (place is null or limit_id is not null),
  add constraint a_limited_job_has_a_gate check ((limit_id is null) = (gate is null)),
  add constraint a_job_holds_a_gate_while_it_waits_for_its_moment check (holds is null or place is null);

create index active_gates on faultline.active (limit_id, gate, pos) where limit_id is not null;
create index later_gates  on faultline.later (limit_id, lane, gate, place) where place is not null;
create index later_holds  on faultline.later (limit_id, gate) where holds;

-- A job at its gate is not looked for by its moment.
drop index faultline.later_run_at;
create index later_run_at on faultline.later (run_at) where place is null;

-- Set once limits are used, by 1. Each enqueue and claim asks it, in place of tables: reading it takes half a microsecond.
-- A sequence: it is not rolled back, so a session that sees a limited row sees it set.
create sequence faultline.limits_used;

-- A claim returns one more column.
update faultline.settings set oldest_client = 23;
