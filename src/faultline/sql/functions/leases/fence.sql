-- running -> running: keep the lease valid until this transaction ends; raises LS001 if it is lost.
create function faultline.fence(job_id bigint, token bigint, claim uuid)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  -- NO KEY UPDATE is the weakest lock that fences: KEY SHARE does not block a claim, a plain SELECT blocks nothing.
  perform from faultline.active as job
  where job.id    = fence.job_id
    and job.token = fence.token
    and job.claim = fence.claim
  for no key update;

  if not found then
    perform faultline.refuse(fence.job_id, fence.token);
  end if;
end;
$$;
