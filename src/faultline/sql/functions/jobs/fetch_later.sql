-- Delete a job from `later` and return it as a row of `active`.
-- The caller holds its lock.
create function faultline.fetch_later(job_id bigint)
returns faultline.active
language plpgsql
volatile
as $$
declare
  job  faultline.active;
begin
  delete from faultline.later as waiting
  where waiting.id = fetch_later.job_id
  returning waiting.id, waiting.job_columns
  into strict job.id, job.job_columns;
  return job;
end;
$$;
