-- The ids of the jobs that match a filter, newest first.
-- Each table is read up to the limit, and only if it can hold a wanted state: dead jobs are not in the ledger. A key matches the
-- jobs that it names now.
create function faultline.matching_job_ids(
  states text[], queues text[], task text, key text, before bigint, most int)
returns setof bigint
language plpgsql
stable
as $$
declare
  top    constant bigint := coalesce(matching_job_ids.before, 9223372036854775807);
  wanted constant text[] := coalesce(matching_job_ids.states, array['queued', 'running', 'succeeded', 'dead', 'cancelled']);
  lines  constant int[] := array(
    select lane.id from faultline.lanes as lane where matching_job_ids.queues is null or lane.queue = any (matching_job_ids.queues));
  named  constant bigint[] := array(select taken.job_id from faultline.keys as taken where taken.key = matching_job_ids.key);
begin
  return query
  select found.id
  from (
    (select job.id
     from faultline.active as job
     where wanted && array['queued', 'running']
       and case when job.claim is null then 'queued' else 'running' end = any (wanted)
       and job.lane = any (lines) and (matching_job_ids.task is null or job.task = matching_job_ids.task)
       and (matching_job_ids.key is null or job.id = any (named)) and job.id < top
     order by job.id desc
     limit matching_job_ids.most)
    union all
    (select job.id
     from faultline.later as job
     where 'queued' = any (wanted)
       and job.lane = any (lines) and (matching_job_ids.task is null or job.task = matching_job_ids.task)
       and (matching_job_ids.key is null or job.id = any (named)) and job.id < top
     order by job.id desc
     limit matching_job_ids.most)
    union all
    (select job.id
     from faultline.dead as job
     where 'dead' = any (wanted)
       and job.lane = any (lines) and (matching_job_ids.task is null or job.task = matching_job_ids.task)
       and (matching_job_ids.key is null or job.id = any (named)) and job.id < top
     order by job.id desc
     limit matching_job_ids.most)
    union all
    (select entry.job_id
     from faultline.ledger as entry
     where wanted && array['succeeded', 'cancelled']
       and entry.slot = 0 and (matching_job_ids.states is null or entry.outcome::text = any (wanted))   -- a damaged entry may have any outcome
       and entry.lane = any (lines) and (matching_job_ids.task is null or entry.task = matching_job_ids.task)
       and (matching_job_ids.key is null or entry.job_id = any (named)) and entry.job_id < top
     order by entry.job_id desc
     limit matching_job_ids.most)
  ) as found
  order by found.id desc
  limit matching_job_ids.most;
end;
$$;
