-- The jobs that fit, newest first, a page at a time: give the last id seen as `before` for the next page.
create function faultline.list_jobs(
  state text default null, queue text default null, task text default null, before bigint default null, most int default 50)
returns setof faultline.jobs
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select *
  from faultline.jobs as job
  where (list_jobs.state is null or job.state = list_jobs.state)
    and (list_jobs.queue is null or job.queue = list_jobs.queue)
    and (list_jobs.task is null or job.task = list_jobs.task)
    and (list_jobs.before is null or job.id < list_jobs.before)
  order by job.id desc
  limit list_jobs.most;
end;
$$;
