-- Make lanes that are empty as they were when they were new: rounds step over them until something is claimed from them again.
-- `top` and `floor` are hints. A claim that is under way while its lane is made quiet may leave `top` at 0: then its lease, should
-- it run out, is found by the walk that reap makes once a minute.
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
