-- Note why a schedule could not be fired, and let the others go first: it is tried again after a minute.
create function faultline.hold_schedule(name text, revision bigint, error text)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  update faultline.schedules as mine
  set error = left(hold_schedule.error, 1000), held_until = faultline.now() + interval '1 minute'
  from (
    select free.name
    from faultline.schedules as free
    where free.name = hold_schedule.name and free.revision = hold_schedule.revision
    for no key update skip locked
  ) as free
  where mine.name = free.name;
end;
$$;
