-- The jobs that fit, newest first, a page at a time, without args and results: a page of them stays small whatever they hold.
create function faultline.find_jobs(
  states text[] default null, queues text[] default null, task text default null, key text default null,
  before bigint default null, most int default 50)
returns setof faultline.jobs
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select job.id, job.state, job.task, job.queue, job.priority, null::jsonb, null::jsonb, job.attempt, job.max_attempts,
         job.crashes, job.run_at, job.created_at, job.claimed_at, job.lease_until, job.finished_at, job.worker, job.token,
         left(job.error, 500), job.key
  from faultline.jobs as job
  where (find_jobs.states is null or job.state = any (find_jobs.states))
    and (find_jobs.queues is null or job.queue = any (find_jobs.queues))
    and (find_jobs.task is null or job.task = find_jobs.task)
    and (find_jobs.key is null or job.key = find_jobs.key)
    and (find_jobs.before is null or job.id < find_jobs.before)
  order by job.id desc
  limit find_jobs.most;
end;
$$;
