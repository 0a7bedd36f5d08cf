-- How many dead jobs a replay with the same filter would queue again.
create function faultline.count_dead(queue text default null, task text default null, died_after timestamptz default null)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select count(*)
    from faultline.dead as job
    join faultline.lanes as lane on lane.id = job.lane
    where (count_dead.queue is null or lane.queue = count_dead.queue)
      and (count_dead.task is null or job.task = count_dead.task)
      and (count_dead.died_after is null or job.died_at >= count_dead.died_after));
end;
$$;
