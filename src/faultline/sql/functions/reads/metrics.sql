-- Figures of the whole database, for an exporter that asks every few seconds.
-- Their cost has a bound for any number of jobs and queues. A count stops at its limit and is then a lower bound; queues beyond the
-- first hundred are counted together as `other`.
create function faultline.metrics()
returns table (name text, labels text[], value double precision)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz := faultline.now();
begin
  return query
  select * from faultline.queue_figures(moment)
  union all
  select * from faultline.table_figures()
  union all
  select * from faultline.limit_figures()
  union all
  select 'refusals', array[counted.reason], sum(counted.times)::double precision
  from (
    select noted.reason, noted.times from (select kept.reason, kept.times from faultline.refusals as kept limit 10000) as noted
    union all
    select known.reason, 0 from unnest(array['token_mismatch', 'settled', 'cancelled', 'gone']) as known (reason)
  ) as counted
  group by counted.reason
  union all
  select 'workers', array[case when known.silent then 'silent' else 'alive' end], count(*)::double precision
  from faultline.list_workers(most => 10000) as known
  group by 2
  union all
  select 'schedules', array[counted.state], sum(counted.times)::double precision
  from (
    select case when mine.paused_at is not null then 'paused' when mine.error is not null then 'failing'
                when mine.ended_at is not null then 'ended' else 'active' end, 1
    from (select * from faultline.schedules limit 100000) as mine
    union all
    select known.state, 0 from unnest(array['active', 'paused', 'failing', 'ended']) as known (state)
  ) as counted (state, times)
  group by counted.state
  union all
  select 'schedule_late_seconds', '{}', coalesce(greatest(extract(epoch from moment - (
    select mine.next_at
    from faultline.schedules as mine
    where mine.next_at is not null and mine.paused_at is null
    order by greatest(mine.next_at, mine.held_until)
    limit 1
  )), 0), 0)::double precision
  union all
  select 'claims', '{}', case when drawn.is_called then drawn.last_value else 0 end::double precision
  from faultline.tokens as drawn
  union all
  select 'round_age_seconds', '{}', extract(epoch from moment - nullif(last.round_at, '-infinity'))::double precision
  from faultline.rounds as last
  where isfinite(last.round_at)
  union all
  -- No row if this role cannot see the transactions of others: its own oldest transaction would look like the oldest of all.
  select 'oldest_transaction_seconds', '{}',
         coalesce(max(extract(epoch from moment - session.xact_start)), 0)::double precision
  from pg_stat_activity as session
  where session.pid <> pg_backend_pid() and session.backend_type = 'client backend' and session.datname = current_database()
  having pg_has_role(current_user, 'pg_read_all_stats', 'usage');
end;
$$;
