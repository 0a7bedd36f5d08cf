-- Lock a schedule for a change of it and return its row; raises LS003 if there is none of that name.
create function faultline.lock_schedule(name text)
returns faultline.schedules
language plpgsql
volatile
as $$
declare
  held faultline.schedules;
begin
  select * into held from faultline.schedules as mine where mine.name = lock_schedule.name for no key update;
  if not found then
    raise exception 'there is no schedule %', quote_literal(left(lock_schedule.name, 128))
      using errcode = 'LS003', hint = 'See `faultline schedules list`.';
  end if;
  return held;
end;
$$;
