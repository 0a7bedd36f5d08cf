-- Raise the hints of limits with few gates, so that claims pass the dead index entries of jobs that have left: old transactions keep these.
-- Limits with many gates have few such entries each, and are left as they are.
create function faultline.raise_limit_floors()
returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  gates_max constant int := 1000;
  moment    timestamptz := faultline.now();
  newest    bigint;
  known     record;
  first     bigint;
  raised    int := 0;
begin
  if not exists (select from faultline.limited_lanes) then
    return 0;
  end if;
  select drawn.last_value into newest from faultline.places as drawn;
  perform set_config('lock_timeout', '100ms', true);   -- as partitions does: it is tried again

  -- Too high, it would count too few: read under the lock, in a statement after it.
  for known in select l.id, l.held_floor from faultline.limits as l where newest - l.held_floor > 5000 order by l.parent is not null, l.id loop
    perform from faultline.limits as l where l.id = known.id for no key update skip locked;
    continue when not found;
    first := faultline.first_held(known.id, known.held_floor, gates_max);
    if first - known.held_floor > 5000 then
      update faultline.limits as l set held_floor = first where l.id = known.id;
      raised := raised + 1;
    end if;
  end loop;

  -- As `floors` does: the lower of two observations, so that it does not pass a job that commits in between.
  for known in
    select limited.lane, limited.limit_id, limited.wait_floor, limited.candidate, limited.candidate_at
    from faultline.limited_lanes as limited
    order by limited.queue, limited.lane, limited.limit_id
    for no key update skip locked
  loop
    if exists (
      select from faultline.later as job
      where job.limit_id = known.limit_id and job.lane = known.lane and job.place < known.wait_floor)
    then
      -- A job of a transaction that stayed open.
      update faultline.limited_lanes as limited set wait_floor = 0, candidate = null, candidate_at = null
      where limited.lane = known.lane and limited.limit_id = known.limit_id;
      continue;
    end if;
    first := faultline.first_waiting(known.limit_id, known.lane, known.wait_floor, gates_max, newest);
    if known.candidate is null and first - known.wait_floor > 5000 then
      update faultline.limited_lanes as limited set candidate = first, candidate_at = moment
      where limited.lane = known.lane and limited.limit_id = known.limit_id;
    elsif known.candidate is not null and moment - known.candidate_at not between interval '0' and interval '1 second' then
      update faultline.limited_lanes as limited
      set wait_floor = greatest(known.wait_floor, least(known.candidate, first)), candidate = null, candidate_at = null
      where limited.lane = known.lane and limited.limit_id = known.limit_id;
      raised := raised + 1;
    end if;
  end loop;
  return raised;
end;
$$;
