-- running -> cancelled: the handler reports that the job is no longer wanted.
create function faultline.drop_claimed(job_id bigint, token bigint, claim uuid, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  held faultline.active;
begin
  perform faultline.be_durable();

  delete from faultline.active as job
  where job.id    = drop_claimed.job_id
    and job.token = drop_claimed.token
    and job.claim = drop_claimed.claim
  returning job.* into held;

  if not found then
    perform faultline.refuse(drop_claimed.job_id, drop_claimed.token);
  end if;

  perform faultline.write_ledger(held, 'cancelled', faultline.now(), error => drop_claimed.reason);
end;
$$;
