-- running -> cancelled: the handler reports that the job is no longer wanted.
create function faultline.cancel_claimed(job_id bigint, token bigint, claim uuid, reason text default null)
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
  where job.id    = cancel_claimed.job_id
    and job.token = cancel_claimed.token
    and job.claim = cancel_claimed.claim
  returning job.* into held;

  if not found then
    perform faultline.refuse(cancel_claimed.job_id, cancel_claimed.token);
  end if;

  perform faultline.write_ledger(held, 'cancelled', faultline.now(), error => cancel_claimed.reason);
end;
$$;
