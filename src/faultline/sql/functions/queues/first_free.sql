-- The places of the first and the last free job of each lane: the watchdog wakes idle workers for jobs that came without a wake-up.
-- The first may be of a task that idle workers do not know, and stay; then the last shows that others came behind it.
-- It reads from the floor on, like a claim, so its cost does not grow with the lane's history.
create function faultline.first_free()
returns table (queue text, pos bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select lane.queue::text, free.pos
  from faultline.lanes as lane
  cross join lateral (
    (
      select job.pos
      from faultline.active as job
      where job.lane = lane.id
        and job.pos >= lane.floor
        and job.claim is null
        and job.token < 2305843009213693952
      order by job.pos
      limit 1
    )
    union
    (
      select job.pos
      from faultline.active as job
      where job.lane = lane.id
        and job.pos >= lane.floor
        and job.claim is null
        and job.token < 2305843009213693952
      order by job.pos desc
      limit 1
    )
  ) as free
  where not lane.paused;
end;
$$;
