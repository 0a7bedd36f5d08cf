-- How many more jobs a limit lets run in total, its children's among them; null without such a bound.
-- A statement of its own, after the lock: it sees every admission before, and a departure that is not committed as still there.
create function faultline.slots_left(known faultline.limits)
returns int
language plpgsql
volatile
as $$
declare
  held int;
begin
  if known.total is null then
    return null;
  end if;
  select count(*) into held
  from (
    select
    from faultline.limits as counted
    cross join lateral (
      select
      from faultline.active as job
      where job.limit_id = counted.id and job.pos >= counted.held_floor
      limit known.total
    ) as job
    where counted.id = known.id or counted.parent = known.id
    limit known.total
  ) as job;
  return known.total - held;
end;
$$;
