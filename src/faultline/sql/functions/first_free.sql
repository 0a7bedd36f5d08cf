-- Where the first free job of each lane stands: for the watchdog that tells idle workers of what came without a hint.
-- From the floor on, as a claim looks: what it costs does not grow with what a lane has behind it.
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
    select job.pos
    from faultline.active as job
    where job.lane = lane.id
      and job.pos >= lane.floor
      and job.claim is null
      and job.token < 2305843009213693952
    order by job.pos
    limit 1
  ) as free
  where not lane.paused;
end;
$$;
