-- What a health check asks: how long ago the last round was (null: never), and how far the slowest queue is behind.
-- A paused queue is behind on purpose and does not count.
create function faultline.health()
returns table (round_age_seconds double precision, lag_seconds double precision)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select (
           select extract(epoch from faultline.now() - nullif(last.round_at, '-infinity'))::double precision
           from faultline.rounds as last
         ),
         (
           select coalesce(max(lag.lag_seconds), 0)
           from faultline.queue_lag as lag
           join faultline.queues as owner on owner.name = lag.queue
           where owner.paused_at is null
         );
end;
$$;
