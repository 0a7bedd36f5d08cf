-- queued -> queued: move free jobs from behind a lane's floor to a place that claims read.
-- They come from enqueuing transactions that stayed open for long.
create function faultline.rescue(most int default 500)
returns table (id bigint, queue text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  with behind as materialized (
    select late.id, lane.queue
    from faultline.lanes as lane
    cross join lateral (
      select job.id
      from faultline.active as job
      where job.lane = lane.id
        and job.pos < lane.floor
        and job.claim is null
        and job.token < 2305843009213693952
      order by job.pos
      limit rescue.most
      for no key update skip locked
    ) as late
    where lane.floor > 0   -- nothing stands behind a floor of 0
    limit rescue.most
  ),
  moved as (
    update faultline.active as job
    set pos = nextval('faultline.places')
    from behind
    where job.id = behind.id
    returning job.id
  )
  select behind.id, behind.queue::text
  from behind
  join moved on moved.id = behind.id;
end;
$$;
