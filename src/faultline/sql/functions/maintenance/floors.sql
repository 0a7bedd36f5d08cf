-- Raise each lane's floor to its first free place: a hint, so that claims skip running jobs and dead rows.
-- The floor is the lower of two observations, a tick apart, so that it does not pass a job that commits in between. It moves
-- only by more than 5,000 places, so that the lane's row changes rarely.
create function faultline.floors()
returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment  timestamptz := faultline.now();
  newest  bigint;
  raised  int;
begin
  -- `doctor` reads it: the leader works.
  update faultline.rounds as row
  set chores_at = moment
  from (
    select last.only_row
    from faultline.rounds as last
    where last.chores_at not between moment - interval '5 seconds' and moment
    for no key update skip locked
  ) as last
  where row.only_row = last.only_row;

  select places.last_value into newest from faultline.places as places;

  with seen as materialized (
    select lane.id, lane.floor, lane.candidate_at,
           case when lane.candidate_at <= moment then lane.candidate end as candidate,   -- not if the clock was set back
           coalesce((
             select job.pos
             from faultline.active as job
             where job.lane = lane.id and job.pos >= lane.floor and job.claim is null
             order by job.pos
             limit 1), newest) as first
    from faultline.lanes as lane
    where lane.top > 0   -- nothing was claimed from the other lanes, so there is nothing to skip
  ),
  moved as (
    update faultline.lanes as lane
    set floor = case when seen.candidate is null then lane.floor
                     else greatest(lane.floor, least(seen.candidate, seen.first)) end,
        candidate = case when seen.candidate is null then seen.first end,
        candidate_at = case when seen.candidate is null then moment end
    from seen
    where lane.id = seen.id
      and (case when seen.candidate is null then seen.first - seen.floor > 5000
                else moment - seen.candidate_at >= interval '1 second' end)
    returning seen.candidate
  )
  select count(*) filter (where moved.candidate is not null) into raised from moved;
  return raised;
end;
$$;
