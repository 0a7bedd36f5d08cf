-- Delete old rows, in a bounded batch: lapsed keys, refusals, dead jobs, gone workers and acts past their retention.
create function faultline.prune(most int default 1000)
returns table (keys bigint, refusals bigint, dead bigint, workers bigint, acts bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz := faultline.now();
  known  faultline.settings;
begin
  select * into known from faultline.settings;

  -- A key that is unique while queued has no window: as long as its job waits, it is looked at again in an hour.
  with living as materialized (
    select named.scope, named.key from faultline.keys as named
    where named.until < moment
      and (exists (select from faultline.later as job where job.id = named.job_id)
           or exists (select from faultline.active as job where job.id = named.job_id))
    order by named.until limit prune.most for update skip locked)
  update faultline.keys as named set until = moment + interval '1 hour' from living
  where named.scope = living.scope and named.key = living.key;

  -- The key of a dead job stays: it blocks no new job after its window, and a replay takes it back.
  with lapsed as materialized (
    select named.scope, named.key from faultline.keys as named
    where named.until < moment and not exists (select from faultline.dead as job where job.id = named.job_id)
      and not exists (select from faultline.later as job where job.id = named.job_id)
      and not exists (select from faultline.active as job where job.id = named.job_id)
    order by named.until limit prune.most for update skip locked),
  gone as (
    delete from faultline.keys as named using lapsed
    where named.scope = lapsed.scope and named.key = lapsed.key returning 1)
  select count(*) into keys from gone;

  with old as materialized (
    select noted.job_id, noted.token, noted.worker, noted.reason from faultline.refusals as noted
    where noted.last_at < moment - known.ledger_retention limit prune.most for update skip locked),
  gone as (
    delete from faultline.refusals as noted using old
    where (noted.job_id, noted.token, noted.worker, noted.reason) = (old.job_id, old.token, old.worker, old.reason) returning 1)
  select count(*) into refusals from gone;

  with old as materialized (
    select job.id from faultline.dead as job
    where job.died_at < moment - known.dead_retention order by job.died_at limit prune.most for update skip locked),
  gone as (delete from faultline.dead as job using old where job.id = old.id returning 1)
  select count(*) into dead from gone;

  with old as materialized (
    select worker.id from faultline.workers as worker
    where worker.seen_at < moment - greatest(known.ledger_retention, interval '1 day') limit prune.most for update skip locked),
  gone as (delete from faultline.workers as worker using old where worker.id = old.id returning 1)
  select count(*) into workers from gone;

  with old as materialized (
    select act.id from faultline.acts as act
    where act.at < moment - known.acts_retention order by act.at limit prune.most for update skip locked),
  gone as (delete from faultline.acts as act using old where act.id = old.id returning 1)
  select count(*) into acts from gone;

  return next;
end;
$$;
