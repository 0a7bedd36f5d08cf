-- running -> queued | dead: the attempt failed; the job is tried again after `delay`, or is dead when no attempt is left.
create function faultline.fail(job_id bigint, token bigint, claim uuid, error text, delay interval default interval '1 second')
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  ended record;
begin
  perform faultline.be_durable();
  perform faultline.fence(fail.job_id, fail.token, fail.claim);
  select * into ended from faultline.put_back(
    array[fail.job_id], 'failed', fail.error, faultline.now(), delay => coalesce(fail.delay, interval '0'));
  return case when ended.died then 'dead' else 'queued' end;
end;
$$;
