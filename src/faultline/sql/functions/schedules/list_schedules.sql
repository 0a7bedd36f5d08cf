-- Schedules by name, a page at a time; with `schedule` only that one. With `queues`, those whose jobs go to one of them.
-- Only the one that is named comes with its args.
-- The state is `paused`, `failing` (its next time cannot be computed, or it cannot be fired), `ended` or `active`.
create function faultline.list_schedules(
  schedule text default null, after text default null, most int default 100, queues text[] default null)
returns table (
  name text, state text, app text, release text, task text, queue text, priority int, args text, max_attempts int, lease_for interval,
  timeout interval, retry text, cron text, time_zone text, every interval, at timestamptz, starts_at timestamptz, jitter interval,
  missed text, overlap text, revision bigint, next_at timestamptz, last_at timestamptz, last_job bigint, error text,
  paused_by text, created_at timestamptz, changed_at timestamptz, moment timestamptz)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  now_is timestamptz := faultline.now();
begin
  return query
  select mine.name::text,
         case when mine.paused_at is not null then 'paused' when mine.error is not null then 'failing'
              when mine.ended_at is not null then 'ended' else 'active' end,
         mine.app::text, nullif(array_to_string(mine.release::bigint[], '.'), ''), mine.task::text, mine.queue::text,
         mine.priority::int, case when list_schedules.schedule is not null then mine.args::text end, mine.max_attempts::int, mine.lease_for::interval, mine.timeout::interval,
         mine.retry::text, mine.cron, mine.time_zone, mine.every::interval, mine.at::timestamptz, mine.starts_at,
         mine.jitter::interval, mine.missed, mine.overlap, mine.revision, mine.next_at, mine.last_at, last.job_id, mine.error,
         mine.paused_by, mine.created_at, mine.changed_at, now_is
  from faultline.schedules as mine
  left join lateral (
    select noted.job_id
    from faultline.occurrences as noted
    where noted.schedule = mine.name and noted.job_id is not null
    order by noted.at desc
    limit 1
  ) as last on true
  where (list_schedules.schedule is null or mine.name = list_schedules.schedule)
    and mine.name > coalesce(list_schedules.after, '')
    and (list_schedules.queues is null or mine.queue = any (list_schedules.queues))
  order by mine.name
  limit least(list_schedules.most, 10000);
end;
$$;
