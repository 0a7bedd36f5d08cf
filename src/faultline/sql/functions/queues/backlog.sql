-- How much work a queue has, for an autoscaler: jobs that are due, running, or scheduled for a moment that has passed.
-- Running jobs count, or the scaler would stop the last busy worker. Late scheduled jobs count, because no promotion runs
-- without a worker. The count has a bound, so its cost does not grow with the queue.
create function faultline.backlog(queue text default null, most int default 10000)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment  timestamptz := faultline.now();
  held    bigint;
  late    bigint;
begin
  select count(*) into held
  from (
    select
    from faultline.lanes as lane
    cross join lateral (
      select
      from faultline.active as job
      where job.lane = lane.id
        -- Of a paused queue, only the running jobs count. They stand at or before the lane's top, as reap assumes too.
        and job.pos <= case when lane.paused then lane.top else 9223372036854775807 end
        and (job.claim is not null or not lane.paused)
      order by job.pos
      limit backlog.most
    ) as work
    where backlog.queue is null or lane.queue = backlog.queue
    limit backlog.most
  ) as counted;

  select count(*) into late
  from (
    (
      select job.lane
      from faultline.later as job
      where job.run_at <= moment and job.place is null
      order by job.run_at
      limit backlog.most
    )
    union all
    (
      select job.lane   -- for a slot of its limit; without a worker it would wait for good
      from faultline.limited_lanes as limited
      join faultline.later as job on job.limit_id = limited.limit_id and job.lane = limited.lane and job.place is not null
      where backlog.queue is null or limited.queue = backlog.queue
      limit backlog.most
    )
  ) as overdue
  join faultline.lanes as lane on lane.id = overdue.lane
  where not lane.paused
    and (backlog.queue is null or lane.queue = backlog.queue);

  return least(held + late, backlog.most);
end;
$$;
