-- The jobs that match a filter, newest first, one page at a time.
-- Args and results are left out, so a page stays small.
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
         left(job.error, 500), job.key, job.damage
  from faultline.matching_job_ids(
    find_jobs.states, find_jobs.queues, find_jobs.task, find_jobs.key, find_jobs.before, find_jobs.most) as fits (id)
  cross join lateral (select * from faultline.jobs as known where known.id = fits.id) as job
  order by job.id desc;
end;
$$;
