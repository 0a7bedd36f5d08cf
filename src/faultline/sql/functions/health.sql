-- What a health check asks: how long ago the last round was (null: never), how far the slowest queue is behind, and how long ago
-- the leader's chores were done, or the first leader came if they never were (null: no leader came yet).
-- A paused queue is behind on purpose and does not count.
create function faultline.health()
returns table (round_age_seconds double precision, lag_seconds double precision, chores_age_seconds double precision)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz := faultline.now();
begin
  return query
  select (
           select extract(epoch from moment - nullif(last.round_at, '-infinity'))::double precision
           from faultline.rounds as last
         ),
         (
           select coalesce(max(lag.lag_seconds), 0)
           from faultline.queue_lag as lag
           join faultline.queues as owner on owner.name = lag.queue
           where owner.paused_at is null
         ),
         (
           select extract(epoch from moment - nullif(last.chores_at, '-infinity'))::double precision
           from faultline.rounds as last
         );
end;
$$;
