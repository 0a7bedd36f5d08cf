-- How many jobs match a filter, counted up to `most`: an exact count of a long queue costs too much.
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
    from faultline.matching_job_ids(count_jobs.states, count_jobs.queues, count_jobs.task, null, null, count_jobs.most));
end;
$$;
