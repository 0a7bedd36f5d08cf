-- A job's state, as in the view `jobs`; null when there is no such job.
create function faultline.state_of(job_id bigint)
returns text
language plpgsql
volatile
as $$
begin
  return (select job.state from faultline.jobs as job where job.id = state_of.job_id);
end;
$$;
