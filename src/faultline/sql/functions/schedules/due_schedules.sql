-- The schedules that are due, or will be within `ahead`, or whose next time is to be computed; the soonest first.
create function faultline.due_schedules(ahead interval default interval '1 second', most int default 500)
returns table (
  name text, revision bigint, next_at timestamptz, last_at timestamptz, cron text, time_zone text, every interval, at timestamptz,
  starts_at timestamptz, missed text, ready_at timestamptz, moment timestamptz)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  now_is  timestamptz := faultline.now();
  until   timestamptz := now_is + least(due_schedules.ahead, interval '1 minute');   -- a value, so that the index is searched by it
begin
  return query
  select mine.name::text, mine.revision, mine.next_at, mine.last_at, mine.cron, mine.time_zone, mine.every::interval, mine.at::timestamptz,
         mine.starts_at, mine.missed, greatest(mine.next_at, mine.held_until), now_is
  from faultline.schedules as mine
  where greatest(mine.next_at, mine.held_until) <= until and mine.next_at is not null and mine.paused_at is null
  order by greatest(mine.next_at, mine.held_until)
  limit due_schedules.most;

  return query
  select mine.name::text, mine.revision, mine.next_at, mine.last_at, mine.cron, mine.time_zone, mine.every::interval, mine.at::timestamptz,
         mine.starts_at, mine.missed, now_is, now_is
  from faultline.schedules as mine
  where mine.next_at is null and mine.paused_at is null and mine.ended_at is null
    and (mine.held_until is null or mine.held_until <= now_is)
  limit due_schedules.most;
end;
$$;
