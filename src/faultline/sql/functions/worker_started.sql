-- A worker says that it is there. For people only: ownership never depends on this table.
create function faultline.worker_started(
  name text, host text, pid int, queues text[], jobs_max int, version text,
  key_name text default null)
returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  number  int;
  moment  timestamptz := faultline.now();
begin
  perform faultline.check_server();   -- numbers of workers and lanes may lag behind their rows too
  insert into faultline.workers (name, host, pid, queues, jobs_max, version, started_at, seen_at, key_name)
  values (worker_started.name, worker_started.host, worker_started.pid, worker_started.queues,
          worker_started.jobs_max, worker_started.version, moment, moment, worker_started.key_name)
  returning id into number;

  -- A producer's long transaction that made a lane itself would hold up every other producer of it.
  -- In the order of their names, so that two workers that make the same ones do not deadlock.
  perform faultline.lane_of(mine.queue, 0)
  from (select queue from unnest(worker_started.queues) as queue order by queue) as mine;
  return number;
end;
$$;
