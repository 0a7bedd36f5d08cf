-- For doctor: schedules that are failing, and those that have been due for over a minute; ten names of each.
create function faultline.schedule_troubles()
returns table (failing bigint, failing_names text[], late bigint, late_names text[])
language plpgsql
volatile
as $$
declare
  overdue timestamptz := faultline.now() - interval '1 minute';
begin
  return query
  select count(*) filter (where mine.error is not null),
         coalesce((array_agg(mine.name::text order by mine.name) filter (where mine.error is not null))[1:10], '{}'),
         count(*) filter (where mine.error is null),
         coalesce((array_agg(mine.name::text order by mine.name) filter (where mine.error is null))[1:10], '{}')
  from faultline.schedules as mine
  where mine.paused_at is null and (mine.error is not null or greatest(mine.next_at, mine.held_until) < overdue);
end;
$$;
