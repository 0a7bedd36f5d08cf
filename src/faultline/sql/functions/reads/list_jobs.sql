-- The jobs that match a filter, newest first, one page at a time.
-- For the next page, give the last id as `before`.
create function faultline.list_jobs(
  state text default null, queue text default null, task text default null, before bigint default null, most int default 50)
returns setof faultline.jobs
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(list_jobs.most < 0, true) then
    raise exception 'a page has 0 jobs or more, not %', coalesce(list_jobs.most::text, 'null') using errcode = 'LS005';
  end if;
  return query
  select job.*
  from faultline.matching_job_ids(
    case when list_jobs.state is not null then array[list_jobs.state] end,
    case when list_jobs.queue is not null then array[list_jobs.queue] end,
    list_jobs.task, null, list_jobs.before, list_jobs.most) as fits (id)
  cross join lateral (select * from faultline.jobs as known where known.id = fits.id) as job
  order by job.id desc;
end;
$$;
