-- Raise each lane's `top`, the place up to which reap walks, above the places just claimed.
-- It moves 5,000 places at a time, so a lane's row is written once in some thousand claims. It never waits: a lane that another
-- claim raises is skipped. `top` is a hint: once a minute reap walks past it.
create function faultline.raise_top(lanes int[], places bigint[])
returns void
language sql
volatile
as $$
  with high as (
    select job.lane, max(job.pos) as pos
    from unnest(raise_top.lanes, raise_top.places) as job (lane, pos)
    group by job.lane
  ),
  free as materialized (
    select lane.id, high.pos
    from high
    join faultline.lanes as lane on lane.id = high.lane and lane.top < high.pos
    order by lane.id
    for no key update of lane skip locked
  )
  update faultline.lanes as lane
  set top = free.pos + 5000
  from free
  where lane.id = free.id
$$;
