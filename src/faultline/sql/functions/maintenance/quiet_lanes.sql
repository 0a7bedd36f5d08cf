-- Reset empty lanes to their first state, so that rounds skip them until the next claim from them.
-- `top` and `floor` are hints. A claim that runs during the reset may leave `top` at 0. If its lease expires, the full walk that
-- reap makes once a minute finds it.
create function faultline.quiet_lanes()
returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  quiet int;
begin
  with free as materialized (
    select lane.id
    from faultline.lanes as lane
    where lane.top > 0
      and not exists (select from faultline.active as job where job.lane = lane.id)
    for no key update skip locked
  )
  update faultline.lanes as lane
  set top = 0, floor = 0, candidate = null, candidate_at = null
  from free
  where lane.id = free.id;
  get diagnostics quiet = row_count;
  return quiet;
end;
$$;
