-- running -> queued | dead: as `fail`, in the handler's own transaction.
create function faultline.fail_in(
  job_id bigint, token bigint, claim uuid, error text, delay interval default interval '1 second',
  savepoint boolean default false)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.fence_in(fail_in.job_id, fail_in.token, fail_in.claim, fail_in.savepoint);
  return faultline.fail(fail_in.job_id, fail_in.token, fail_in.claim, fail_in.error, fail_in.delay);
end;
$$;
