-- queued -> cancelled: end jobs that no worker claimed before their `expires_at`.
-- A claim takes none of them, however late this runs: it only clears them away.
create function faultline.expire(most int default 500)
returns table (id bigint, task text, queue text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment   timestamptz := faultline.now();
  due      bigint[];
  put_off  bigint[];
begin
  due := array(
    select job.id
    from faultline.active as job
    where job.expires_at <= moment and job.claim is null
    order by job.expires_at
    limit expire.most
    for no key update skip locked);
  put_off := array(
    select job.id
    from faultline.later as job
    where job.expires_at <= moment
    order by job.expires_at
    limit expire.most - cardinality(due)
    for update skip locked);
  if cardinality(due) + cardinality(put_off) = 0 then
    return;
  end if;

  perform faultline.be_durable();
  return query
  with gone as (
    delete from faultline.active as job
    where job.id = any (due)
    returning job.id, job.token, job.created_at, job.lane, job.attempt, job.max_attempts, job.crashes, job.task, job.key, job.args
  ),
  gone_later as (
    delete from faultline.later as job
    where job.id = any (put_off)
    returning job.id, job.token, job.created_at, job.lane, job.attempt, job.max_attempts, job.crashes, job.task, job.key, job.args
  ),
  ended as materialized (
    select late.*, lane.queue, lane.keep
    from (select * from gone union all select * from gone_later) as late
    join faultline.lanes as lane on lane.id = late.lane
  ),
  entered as (
    insert into faultline.ledger (
      job_id, slot, token, created_at, settled_at, lane, attempt, max_attempts, crashes, outcome, task, key, error, args)
    select ended.id, 0, ended.token, ended.created_at, moment, ended.lane, ended.attempt, ended.max_attempts, ended.crashes,
           'cancelled', ended.task, ended.key, 'expired before it started',
           case when ended.keep = 'full' then ended.args end
    from ended
  ),
  lapsed as (
    update faultline.keys as named
    set until = moment + named.keep_for
    from ended
    where ended.key is not null
      and named.scope = ended.queue and named.key = ended.key and named.job_id = ended.id
  )
  select ended.id, ended.task::text, ended.queue::text from ended;
end;
$$;
