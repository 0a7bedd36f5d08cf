-- How many jobs fit, counted no further than `most`: on a long queue an exact count costs more than it tells.
create function faultline.count_jobs(
  states text[] default null, queues text[] default null, task text default null, most int default 10001)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select count(*)
    from (
      select
      from faultline.jobs as job
      where (count_jobs.states is null or job.state = any (count_jobs.states))
        and (count_jobs.queues is null or job.queue = any (count_jobs.queues))
        and (count_jobs.task is null or job.task = count_jobs.task)
      limit count_jobs.most
    ) as fitting);
end;
$$;
