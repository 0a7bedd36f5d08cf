-- Note the next times that a watchdog computed from cron expressions, or why there is none: a text that is no expression, an unknown
-- time zone. Such a schedule is tried again each minute. A schedule that changed meanwhile is left alone.
create function faultline.compute_next(computed jsonb)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment  timestamptz := faultline.now();
  wrote   bigint;
begin
  update faultline.schedules as row
  set next_at = free.next,
      ended_at = case when free.ended then moment end,
      error = left(free.error, 1000),
      held_until = case when free.error is not null then moment + interval '1 minute' end
  from (
    select locked.name, given.next, given.ended, given.error
    from jsonb_to_recordset(computed) as given (name text, revision bigint, next timestamptz, ended boolean, error text)
    join faultline.schedules as locked on locked.name = given.name
    where locked.revision = given.revision and locked.next_at is null and locked.ended_at is null and locked.paused_at is null
      and (given.next is null or given.next > coalesce(locked.last_at, '-infinity'))
    order by locked.name
    for no key update of locked skip locked
  ) as free
  where row.name = free.name;
  get diagnostics wrote = row_count;
  return wrote;
end;
$$;
