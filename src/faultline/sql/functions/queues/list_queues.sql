-- Every queue, or the one of this name, with its number of jobs in each state and its lag.
create function faultline.list_queues(name text default null)
returns table (
  queue text, paused boolean, keep text, due bigint, running bigint, scheduled bigint, dead bigint, lag_seconds double precision,
  max_depth int, is_full boolean, age_after_seconds double precision)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if list_queues.name is not null then
    return query
    select depth.queue, depth.paused, depth.keep, depth.due, depth.running, depth.scheduled, depth.dead, lag.lag_seconds,
      owner.max_depth, exists (select from faultline.lanes as lane where lane.queue = depth.queue and lane.is_full),
      extract(epoch from owner.age_after)::double precision
    from faultline.queue_depth as depth
    join faultline.queue_lag as lag on lag.queue = depth.queue
    join faultline.queues as owner on owner.name = depth.queue
    where depth.queue = list_queues.name;
    return;
  end if;
  return query
  select depth.queue, depth.paused, depth.keep, depth.due, depth.running, depth.scheduled, depth.dead, lag.lag_seconds,
      owner.max_depth, exists (select from faultline.lanes as lane where lane.queue = depth.queue and lane.is_full),
      extract(epoch from owner.age_after)::double precision
  from faultline.queue_depth as depth
  join faultline.queue_lag as lag on lag.queue = depth.queue
  join faultline.queues as owner on owner.name = depth.queue
  order by depth.queue;
end;
$$;
