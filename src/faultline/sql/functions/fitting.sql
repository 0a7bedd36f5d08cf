-- The ids of the jobs that fit, newest first. Each table is asked for as many as are wanted and no more, and only where a state
-- that was asked for can stand in it: the dead are not looked for in the ledger. By key: the jobs that the key names now.
create function faultline.fitting(
  states text[], queues text[], task text, key text, before bigint, most int)
returns setof bigint
language plpgsql
stable
as $$
declare
  top    constant bigint := coalesce(fitting.before, 9223372036854775807);
  wanted constant text[] := coalesce(fitting.states, array['queued', 'running', 'succeeded', 'dead', 'cancelled']);
  lines  constant int[] := array(
    select lane.id from faultline.lanes as lane where fitting.queues is null or lane.queue = any (fitting.queues));
  named  constant bigint[] := array(select taken.job_id from faultline.keys as taken where taken.key = fitting.key);
begin
  return query
  select found.id
  from (
    (select job.id
     from faultline.active as job
     where wanted && array['queued', 'running']
       and case when job.claim is null then 'queued' else 'running' end = any (wanted)
       and job.lane = any (lines) and (fitting.task is null or job.task = fitting.task)
       and (fitting.key is null or job.id = any (named)) and job.id < top
     order by job.id desc
     limit fitting.most)
    union all
    (select job.id
     from faultline.later as job
     where 'queued' = any (wanted)
       and job.lane = any (lines) and (fitting.task is null or job.task = fitting.task)
       and (fitting.key is null or job.id = any (named)) and job.id < top
     order by job.id desc
     limit fitting.most)
    union all
    (select job.id
     from faultline.dead as job
     where 'dead' = any (wanted)
       and job.lane = any (lines) and (fitting.task is null or job.task = fitting.task)
       and (fitting.key is null or job.id = any (named)) and job.id < top
     order by job.id desc
     limit fitting.most)
    union all
    (select entry.job_id
     from faultline.ledger as entry
     where wanted && array['succeeded', 'cancelled']
       and entry.slot = 0 and (fitting.states is null or entry.outcome::text = any (wanted))   -- a damaged one has any
       and entry.lane = any (lines) and (fitting.task is null or entry.task = fitting.task)
       and (fitting.key is null or entry.job_id = any (named)) and entry.job_id < top
     order by entry.job_id desc
     limit fitting.most)
  ) as found
  order by found.id desc
  limit fitting.most;
end;
$$;
