-- Register a worker; this table is for people, ownership of jobs never depends on it.
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
  known   bigint;
  alive   bigint;
begin
  -- Each name creates a lane, which rounds may have to read.
  if cardinality(worker_started.queues) > 1000 then
    raise exception 'a worker names at most 1000 queues; this one named %', cardinality(worker_started.queues)
      using errcode = 'LS005', hint = 'Start several workers, each with some of the queues.';
  end if;
  if char_length(worker_started.host) > 200 or char_length(worker_started.key_name) > 200 or char_length(worker_started.version) > 100 then
    raise exception 'a worker''s host and its key''s name have at most 200 characters, and its version at most 100'
      using errcode = 'LS005';
  end if;
  if worker_started.key_name is not null then
    select count(*), count(*) filter (where worker.stopped_at is null and worker.seen_at >= moment - setting.default_lease)
    into known, alive
    from faultline.workers as worker
    cross join faultline.settings as setting
    where worker.key_name = worker_started.key_name;
    if alive >= 2000 then
      raise exception 'the key % has 2000 workers that run, and starts no more', worker_started.key_name
        using errcode = 'LS005', hint = 'Stop some of them, or start more with another key.';
    elsif known >= 4000 then   -- a key that starts workers over and over keeps no more rows than these
      delete from faultline.workers as worker
      using (
        select gone.id
        from faultline.workers as gone
        cross join faultline.settings as setting
        where gone.key_name = worker_started.key_name
          and (gone.stopped_at is not null or gone.seen_at < moment - setting.default_lease)
        order by gone.id
        limit known - 3999
        for update of gone skip locked) as oldest
      where worker.id = oldest.id;
    end if;
  end if;
  perform faultline.check_server();   -- the sequences of workers and lanes may be behind their rows too
  insert into faultline.workers (name, host, pid, queues, jobs_max, version, started_at, seen_at, key_name)
  values (worker_started.name, worker_started.host, worker_started.pid, worker_started.queues,
          worker_started.jobs_max, worker_started.version, moment, moment, worker_started.key_name)
  returning id into number;

  -- The worker creates the lanes: a producer's long transaction that creates one would block every other producer of the queue.
  -- In the order of the names, so that two workers with the same queues do not deadlock.
  perform faultline.lane_of(mine.queue, 0)
  from (select queue from unnest(worker_started.queues) as queue order by queue) as mine;
  return number;
end;
$$;
