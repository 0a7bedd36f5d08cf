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
    from faultline.fitting(count_jobs.states, count_jobs.queues, count_jobs.task, null, null, count_jobs.most));
end;
$$;
