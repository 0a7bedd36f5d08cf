-- How much work a queue has for its workers, for a scaler to ask: due, running, and waiting whose moment has come.
-- With the running, or the last busy worker would be taken away from its job; with the late, because without a worker
-- nobody promotes them. Counted up to a bound, so that it costs the same however long the line is.
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
        -- Of a queue that is paused only what already runs, which does not stand past its top: as far as reap walks.
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
    select job.lane
    from faultline.later as job
    where job.run_at <= moment
    order by job.run_at
    limit backlog.most
  ) as overdue
  join faultline.lanes as lane on lane.id = overdue.lane
  where not lane.paused
    and (backlog.queue is null or lane.queue = backlog.queue);

  return least(held + late, backlog.most);
end;
$$;
