-- Take a job out of `later`, shaped as the active row it was or will be. The caller holds its lock.
create function faultline.fetch_later(job_id bigint)
returns faultline.active
language plpgsql
volatile
as $$
declare
  waiting  faultline.later;
  job      faultline.active;
begin
  delete from faultline.later as gone where gone.id = fetch_later.job_id returning gone.* into strict waiting;
  job.id := waiting.id;
  job.token := waiting.token;
  job.created_at := waiting.created_at;
  job.lane := waiting.lane;
  job.attempt := waiting.attempt;
  job.max_attempts := waiting.max_attempts;
  job.crashes := waiting.crashes;
  job.crashes_alone := waiting.crashes_alone;
  job.task := waiting.task;
  job.key := waiting.key;
  job.lease_for := waiting.lease_for;
  job.timeout := waiting.timeout;
  job.retry := waiting.retry;
  job.error := waiting.error;
  job.args := waiting.args;
  job.trace := waiting.trace;
  job.key_seed := waiting.key_seed;
  return job;
end;
$$;
