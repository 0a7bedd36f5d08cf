-- running -> queued | dead: the job's process crashed, and its worker reports it.
-- The job is dead after `max_crashes` crashes alone in a process. A crash with other jobs in the process is only counted.
create function faultline.crash(
  job_id bigint, token bigint, claim uuid, error text, signature text, alone boolean,
  max_crashes bigint default null, delay interval default null)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  times  int;
  ended  record;
begin
  perform faultline.be_durable();
  perform faultline.fence(crash.job_id, crash.token, crash.claim);

  if crash.alone then
    select coalesce(job.crashes_alone, 0) + 1 into times from faultline.active as job where job.id = crash.job_id;
  end if;
  select * into ended from faultline.put_back(
    array[crash.job_id], 'failed', crash.error, faultline.now(), delay => crash.delay, crashed => true,
    alone => coalesce(crash.alone, false),
    dead_reason => case when times >= crash.max_crashes then
      format('out of crashes: crashed alone %s times, at last by %s', times, coalesce(nullif(crash.signature, ''), 'an unknown cause'))
    end);
  return case when ended.died then 'dead' else 'queued' end;
end;
$$;
