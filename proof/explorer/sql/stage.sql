-- What the explorer needs in a database of its own, beside an installed Faultline. Nothing here is for production.
-- No braces anywhere: isolationtester takes the first closing one for the end of its block.
create schema explorer;

-- Virtual time. A sequence stands outside transactions, so a tick is just another step, and every session sees it at once.
create sequence explorer.clock minvalue 0 start 0;
create sequence explorer.turns;
create sequence explorer.stops;

create or replace function faultline.now()
returns timestamptz
language plpgsql   -- which keeps its plan
volatile
as $$
begin
  return (select timestamptz '2040-01-01 00:00+00' + clock.last_value * interval '1 second' from explorer.clock as clock);
end;
$$;

create function explorer.tick(seconds int)
returns bigint
language sql
as $$ select setval('explorer.clock', clock.last_value + tick.seconds) from explorer.clock as clock $$;

-- What each session remembers: the leases it was granted.
create table explorer.hands (
  hand      text primary key,
  who       text not null,
  job_id    bigint not null,
  token     bigint not null,
  claim     uuid not null,
  until     timestamptz not null,
  is_lost   boolean not null default false,   -- a failover took back this very claim
  turn      bigint not null default nextval('explorer.turns')
);

-- What each session was told, in the transaction that told it: done, held, refused ...
create table explorer.told (
  who       text not null,
  verb      text not null,
  job_id    bigint,
  token     bigint,
  claim     uuid,
  answer    text not null,
  until     timestamptz,
  key       text,
  keep_for  interval
);

-- The user's own rows: `work` commits with the job's success, `fenced` under a fence, before it.
create table explorer.effects (
  who     text not null,
  kind    text not null default 'work',
  job_id  bigint not null,
  token   bigint not null,
  claim   uuid not null
);

-- How many jobs of the task `limited` may hold a lease at once; no row where a scenario has no limit.
create table explorer.at_most (most int not null);
-- What each watchdog saw to be due: it is fired in a later statement, as it is computed in between.
create table explorer.firings (
  who      text not null,
  firings  jsonb not null
);

-- Those that the audit holds against the ledger.
create view explorer.work as
select effect.job_id, effect.token, effect.claim from explorer.effects as effect where effect.kind = 'work';

-- Stop here until the explorer says go: it holds the lock that we ask for. Only in sessions that it steps.
create function explorer.stop(place text)
returns boolean
language plpgsql
set lock_timeout = 0
as $$
declare
  number bigint;
begin
  if coalesce(current_setting('explorer.who', true), '') = '' then
    return false;
  end if;
  number := nextval('explorer.stops');
  raise notice 'stop % in %', number, place;
  perform pg_advisory_lock(number);
  perform pg_advisory_unlock(number);
  return true;
end;
$$;

-- As it was: one empty lane, time at its beginning, the first id and token to come.
create function explorer.reset()
returns void
language plpgsql
as $$
begin
  delete from faultline.active;
  delete from faultline.later;
  delete from faultline.dead;
  delete from faultline.ledger;
  delete from faultline.refusals;
  delete from faultline.keys;
  delete from explorer.hands;
  delete from explorer.told;
  delete from explorer.effects;
  delete from explorer.at_most;
  delete from faultline.limited_lanes;
  delete from faultline.task_limits;
  delete from faultline.limits;
  delete from explorer.firings;
  delete from faultline.schedules;
  delete from faultline.occurrences;
  delete from faultline.app_releases;
  update faultline.lanes set floor = 0, top = 0, candidate = null, candidate_at = null
  where floor <> 0 or top <> 0 or candidate is not null;
  update faultline.rounds set round_at = '-infinity', hold_until = '-infinity', walked_at = '-infinity', gap_at = '{}',
    reaped_at = '-infinity'
  where isfinite(round_at) or isfinite(hold_until) or isfinite(walked_at) or isfinite(reaped_at) or gap_at <> '{}';
  perform setval('faultline.places', 1, false), setval('faultline.tokens', 1, false), setval('faultline.schedule_revisions', 1, false), setval('explorer.clock', 0),
          setval('explorer.turns', 1, false), setval('explorer.stops', 1, false);
end;
$$;

-- A scenario's beginning, kept: putting the rows back costs a third of making them again.
create table explorer.kept_active as table faultline.active with no data;
create table explorer.kept_later as table faultline.later with no data;
create table explorer.kept_dead as table faultline.dead with no data;
create table explorer.kept_ledger as table faultline.ledger with no data;
create table explorer.kept_refusals as table faultline.refusals with no data;
create table explorer.kept_keys as table faultline.keys with no data;
create table explorer.kept_hands as table explorer.hands with no data;
create table explorer.kept_told as table explorer.told with no data;
create table explorer.kept_effects as table explorer.effects with no data;
create table explorer.kept_firings as table explorer.firings with no data;
create table explorer.kept_schedules as table faultline.schedules with no data;
create table explorer.kept_occurrences as table faultline.occurrences with no data;
create table explorer.kept_app_releases as table faultline.app_releases with no data;
create table explorer.kept_lanes as table faultline.lanes with no data;
create table explorer.kept_rounds as table faultline.rounds with no data;
create table explorer.kept_limits as table faultline.limits with no data;
create table explorer.kept_sequences (name regclass primary key, last_value bigint not null, is_called boolean not null);

create function explorer.keep()
returns void
language plpgsql
as $$
begin
  truncate explorer.kept_active, explorer.kept_later, explorer.kept_dead, explorer.kept_ledger, explorer.kept_refusals, explorer.kept_keys, explorer.kept_hands, explorer.kept_told, explorer.kept_effects, explorer.kept_firings, explorer.kept_schedules, explorer.kept_occurrences, explorer.kept_app_releases, explorer.kept_lanes, explorer.kept_rounds,
    explorer.kept_limits, explorer.kept_sequences;
  insert into explorer.kept_active table faultline.active;
  insert into explorer.kept_later table faultline.later;
  insert into explorer.kept_dead table faultline.dead;
  insert into explorer.kept_ledger table faultline.ledger;
  insert into explorer.kept_refusals table faultline.refusals;
  insert into explorer.kept_keys table faultline.keys;
  insert into explorer.kept_hands table explorer.hands;
  insert into explorer.kept_told table explorer.told;
  insert into explorer.kept_effects table explorer.effects;
  insert into explorer.kept_firings table explorer.firings;
  insert into explorer.kept_schedules table faultline.schedules;
  insert into explorer.kept_occurrences table faultline.occurrences;
  insert into explorer.kept_app_releases table faultline.app_releases;
  insert into explorer.kept_lanes table faultline.lanes;
  insert into explorer.kept_rounds table faultline.rounds;
  insert into explorer.kept_limits table faultline.limits;
  insert into explorer.kept_sequences
  select 'faultline.places', last_value, is_called from faultline.places
  union all select 'faultline.tokens', last_value, is_called from faultline.tokens
  union all select 'faultline.schedule_revisions', last_value, is_called from faultline.schedule_revisions
  union all select 'explorer.clock', last_value, is_called from explorer.clock
  union all select 'explorer.turns', last_value, is_called from explorer.turns
  union all select 'explorer.stops', last_value, is_called from explorer.stops;
end;
$$;

create function explorer.restore()
returns void
language plpgsql
as $$
begin
  delete from faultline.active;
  delete from faultline.later;
  delete from faultline.dead;
  delete from faultline.ledger;
  delete from faultline.refusals;
  delete from faultline.keys;
  delete from explorer.hands;
  delete from explorer.told;
  delete from explorer.effects;
  delete from explorer.firings;
  delete from faultline.schedules;
  delete from faultline.occurrences;
  delete from faultline.app_releases;
  insert into faultline.active table explorer.kept_active;
  insert into faultline.later table explorer.kept_later;
  insert into faultline.dead table explorer.kept_dead;
  insert into faultline.ledger table explorer.kept_ledger;
  insert into faultline.refusals table explorer.kept_refusals;
  insert into faultline.keys table explorer.kept_keys;
  insert into explorer.hands table explorer.kept_hands;
  insert into explorer.told table explorer.kept_told;
  insert into explorer.effects table explorer.kept_effects;
  insert into explorer.firings table explorer.kept_firings;
  insert into faultline.schedules table explorer.kept_schedules;
  insert into faultline.occurrences table explorer.kept_occurrences;
  insert into faultline.app_releases table explorer.kept_app_releases;
  update faultline.lanes as lane
  set floor = kept.floor, top = kept.top, candidate = kept.candidate, candidate_at = kept.candidate_at
  from explorer.kept_lanes as kept
  where kept.id = lane.id and (kept.floor, kept.top, kept.candidate) is distinct from (lane.floor, lane.top, lane.candidate);
  update faultline.rounds as row
  set round_at = kept.round_at, hold_until = kept.hold_until, walked_at = kept.walked_at, reaped_at = kept.reaped_at
  from explorer.kept_rounds as kept
  where (kept.round_at, kept.hold_until, kept.walked_at, kept.reaped_at)
    is distinct from (row.round_at, row.hold_until, row.walked_at, row.reaped_at);
  update faultline.limits as l
  set total = kept.total, per_key = kept.per_key, full_at = kept.full_at, held_floor = kept.held_floor, rest_until = kept.rest_until
  from explorer.kept_limits as kept
  where kept.id = l.id;
  update faultline.limited_lanes set wait_floor = 0, candidate = null, candidate_at = null;
  perform setval(kept.name, kept.last_value, kept.is_called) from explorer.kept_sequences as kept;
end;
$$;

-- What a standby knows that never heard of the last claim: the job is free, and the next token is the same again.
create function explorer.forget(job bigint)
returns void
language plpgsql
as $$
begin
  update faultline.active
  set token = 0, claim = null, claimed_at = null, claimed_by = null, lease_until = null, deadline_at = null, attempt = attempt - 1
  where id = forget.job;
  update explorer.hands set is_lost = true where job_id = forget.job;
  perform setval('faultline.tokens', 1, false);
end;
$$;

-- A fresh worker and a fresh watchdog finish whatever can be finished; the answer is how many rounds it took.
create function explorer.drain()
returns int
language plpgsql
as $$
declare
  rounds  int := 0;
  lease   record;
  fresh   uuid;
begin
  while rounds < 12 and (exists (select from faultline.active) or exists (select from faultline.later)) loop
    rounds := rounds + 1;
    fresh := lpad(rounds::text, 32, '0')::uuid;
    perform explorer.tick(7200);
    perform faultline.reap();
    perform faultline.promote();
    perform faultline.rescue();
    for lease in select * from faultline.claim(array['default'], 100, '15 s', fresh) loop
      insert into explorer.hands (hand, who, job_id, token, claim, until)
      values ('drain ' || rounds || ' ' || lease.id, 'drain', lease.id, lease.token, fresh, faultline.now() + interval '15 s');
      insert into explorer.effects (who, job_id, token, claim) values ('drain', lease.id, lease.token, fresh);
      perform faultline.complete(lease.id, lease.token, fresh, '"drain"');
    end loop;
  end loop;
  return rounds;
end;
$$;

-- When something was said of a lease: before it ended, with its end (in one transaction), or after; `never` when it has no end.
create function explorer.said_when(said xid, ended xid)
returns text
language plpgsql
as $$
begin
  return case
    when said_when.ended is null then 'never'
    when said_when.ended = said_when.said then 'with'
    when pg_xact_commit_timestamp(said_when.said) < pg_xact_commit_timestamp(said_when.ended) then 'before'
    else 'after'
  end;
end;
$$;

create view explorer.answers as
select told.*, ended.outcome, explorer.said_when(told.xmin, ended.xmin) as said_when
from explorer.told as told
left join lateral (
  select entry.outcome, entry.xmin from faultline.ledger as entry
  where entry.job_id = told.job_id and entry.token = told.token and entry.claim = told.claim) as ended on true;

create view explorer.rows_of_users as
select effect.*, ended.outcome, explorer.said_when(effect.xmin, ended.xmin) as said_when
from explorer.effects as effect
left join lateral (
  select entry.outcome, entry.xmin from faultline.ledger as entry
  where entry.job_id = effect.job_id and entry.token = effect.token and entry.claim = effect.claim) as ended on true;

-- Enqueues of a key that is unique while queued: whether a claim of the job was committed after them.
create view explorer.queued_once as
select told.who, told.job_id, told.answer, exists (
  select from explorer.hands as hand
  where hand.job_id = told.job_id and explorer.said_when(told.xmin, hand.xmin) = 'before') as is_seen
from explorer.told as told
where told.verb = 'enqueue_queued';
-- The leases of limited jobs, and at the claim of each how many of them held one.
create view explorer.limited as
with leases as (
  select hand.job_id, hand.token, pg_xact_commit_timestamp(hand.xmin) as claimed_at, pg_xact_commit_timestamp(entry.xmin) as ended_at
  from explorer.hands as hand
  join faultline.ledger as entry
    on entry.job_id = hand.job_id and entry.token = hand.token and entry.claim = hand.claim and entry.task = 'limited'
)
select mine.job_id, mine.token,
       (select count(*) from leases as beside
        where beside.claimed_at <= mine.claimed_at and beside.ended_at > mine.claimed_at) as at_once
from leases as mine;

-- All that the checks read, as one number: an ending that was checked before need not be checked again.
create function explorer.ending()
returns text
language plpgsql
as $$
begin
  return (select md5(string_agg(line, chr(10) order by line))
  from (
    select 'active' || row::text as line from faultline.active as row
    union all select 'later' || row::text from faultline.later as row
    union all select 'dead' || row::text from faultline.dead as row
    union all select 'ledger' || row::text from faultline.ledger as row
    union all select 'refusals' || row::text from faultline.refusals as row
    union all select 'keys' || row::text from faultline.keys as row
    union all select 'told' || row::text from explorer.answers as row
    union all select 'effect' || row::text from explorer.rows_of_users as row
    union all select 'queued once' || row::text from explorer.queued_once as row
    union all select 'limited' || row::text from explorer.limited as row
    -- All that `check` reads: the verdict on one ending is that on each ending with the same rows.
    union all select 'release' || row::text from faultline.app_releases as row
    union all select 'occurrence' || row::text from faultline.occurrences as row
    union all select format('schedule %s %s %s %s %s', row.name, row.release, row.every, row.starts_at, row.next_at)
    from faultline.schedules as row
    union all
    select format('hand %s %s %s %s %s %s %s', hand, who, job_id, token, claim, is_lost,
                  row_number() over (partition by job_id order by turn))
    from explorer.hands
  ) as lines);
end;
$$;
