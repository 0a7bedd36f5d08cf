-- The workers that are there, or were lately; newest first. Silent: no heartbeat for a whole default lease.
create function faultline.list_workers(gone boolean default false, most int default 100)
returns table (
  id int, name text, host text, pid int, queues text[], jobs_max int, version text, started_at timestamptz,
  seen_at timestamptz, stopped_at timestamptz, running bigint, silent boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select known.id, known.name, known.host, known.pid, known.queues, known.jobs_max, known.version, known.started_at,
         known.seen_at, known.stopped_at, known.running,
         known.stopped_at is null and known.seen_at < faultline.now() - setting.default_lease
  from faultline.worker_list as known
  cross join faultline.settings as setting
  where list_workers.gone or known.stopped_at is null
  order by known.id desc
  limit list_workers.most;
end;
$$;
