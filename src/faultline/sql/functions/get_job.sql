-- One job as it stands now; no row when there is none.
create function faultline.get_job(job_id bigint)
returns setof faultline.jobs
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select * from faultline.jobs as job where job.id = get_job.job_id;
end;
$$;
