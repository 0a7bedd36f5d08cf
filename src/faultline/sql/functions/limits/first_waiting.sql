-- The first place at which a job of a limit waits in a lane, or the newest place; where there are more than so many gates, the old floor.
create function faultline.first_waiting(limit_id int, lane int, wait_floor bigint, gates_max int, newest bigint)
returns bigint
language plpgsql
volatile
as $$
declare
  first  bigint;
  gates  int;
begin
  with recursive walk (gate, place, number) as (
    (
      select job.gate, job.place, 1
      from faultline.later as job
      where job.limit_id = first_waiting.limit_id and job.lane = first_waiting.lane and job.place >= first_waiting.wait_floor
      order by job.gate, job.place
      limit 1
    )
    union all
    select next.gate, next.place, walk.number + 1
    from walk
    cross join lateral (
      select job.gate, job.place
      from faultline.later as job
      where job.limit_id = first_waiting.limit_id and job.lane = first_waiting.lane and job.gate > walk.gate
        and job.place >= first_waiting.wait_floor
      order by job.gate, job.place
      limit 1
    ) as next
    where walk.number < gates_max
  )
  select min(walk.place), count(*) into first, gates from walk;
  return case when gates < gates_max then coalesce(first, first_waiting.newest) else first_waiting.wait_floor end;
end;
$$;
