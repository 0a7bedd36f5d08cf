-- running -> succeeded: settle the job in the handler's own transaction; it succeeds when that commits.
create function faultline.complete_in(
  job_id bigint, token bigint, claim uuid, result faultline.document default null, savepoint boolean default false)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.fence_in(complete_in.job_id, complete_in.token, complete_in.claim, complete_in.savepoint);
  perform faultline.complete(complete_in.job_id, complete_in.token, complete_in.claim, complete_in.result);
end;
$$;
