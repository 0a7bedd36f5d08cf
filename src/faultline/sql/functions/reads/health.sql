-- The figures of a health check: the age of the last round with a reap, the lag of the slowest queue, the age of the last chores.
-- The age of the round is null if there was none. If no chore ran yet, the third figure is the age of the first lead; it is null
-- without a leader. A paused queue is behind on purpose and does not count.
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
           select extract(epoch from moment - nullif(least(last.round_at, last.reaped_at), '-infinity'))::double precision
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
