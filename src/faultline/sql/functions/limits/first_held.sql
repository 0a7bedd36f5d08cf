-- The first place that a limited job holds in `active`; where more than so many gates have one, a place before all. The caller holds
-- the limit's lock: nothing is admitted meanwhile, and what is admitted later has a higher place than any drawn so far.
create function faultline.first_held(limit_id int, held_floor bigint, gates_max int)
returns bigint
language plpgsql
volatile
as $$
declare
  newest bigint;
  first  bigint;
  gates  int;
begin
  select drawn.last_value into newest from faultline.places as drawn;
  with recursive walk (gate, pos, number) as (
    (
      select job.gate, job.pos, 1
      from faultline.active as job
      where job.limit_id = first_held.limit_id and job.pos >= first_held.held_floor
      order by job.gate, job.pos
      limit 1
    )
    union all
    select next.gate, next.pos, walk.number + 1
    from walk
    cross join lateral (
      select job.gate, job.pos
      from faultline.active as job
      where job.limit_id = first_held.limit_id and job.gate > walk.gate and job.pos >= first_held.held_floor
      order by job.gate, job.pos
      limit 1
    ) as next
    where walk.number < gates_max
  )
  select min(walk.pos), count(*) into first, gates from walk;
  return case when gates < gates_max then coalesce(first, newest) else first_held.held_floor end;
end;
$$;
