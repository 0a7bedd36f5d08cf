-- The queue of each of these jobs, in any state; no row for a job that does not exist.
-- A server uses it to check API keys that are limited to some queues.
create function faultline.queues_of(ids bigint[])
returns table (id bigint, queue text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  -- One statement has one snapshot: a job that moves from one table to the other is seen in one of them.
  return query
  select asked.id, lane.queue::text
  from unnest(queues_of.ids) as asked (id)
  cross join lateral (
    select job.lane from faultline.active as job where job.id = asked.id
    union all
    select job.lane from faultline.later as job where job.id = asked.id
    union all
    select job.lane from faultline.dead as job where job.id = asked.id
    union all
    select entry.lane from faultline.ledger as entry where entry.job_id = asked.id and entry.slot = 0
  ) as place
  join faultline.lanes as lane on lane.id = place.lane;
end;
$$;
