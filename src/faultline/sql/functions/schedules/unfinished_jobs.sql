-- The jobs of a schedule that have not ended, among the last twenty that it enqueued: skipped occurrences have none,
-- and would push a long job out.
create function faultline.unfinished_jobs(schedule text)
returns bigint[]
language sql
stable
as $$
  select coalesce(array_agg(last.job_id), '{}')
  from (
    select noted.job_id
    from faultline.occurrences as noted
    where noted.schedule = unfinished_jobs.schedule and noted.job_id is not null
    order by noted.at desc
    limit 20
  ) as last
  where exists (select from faultline.active as job where job.id = last.job_id)
     or exists (select from faultline.later as job where job.id = last.job_id)
$$;
