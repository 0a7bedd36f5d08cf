-- running -> running: as `fence`, for a verb that settles the job in the handler's own transaction, whose commit is made durable.
-- Raises LS006 inside a savepoint, unless that is allowed: a refusal that is swallowed there would not stop the outer commit.
create function faultline.fence_in(job_id bigint, token bigint, claim uuid, savepoint boolean)
returns void
language plpgsql
volatile
as $$
declare
  outside boolean;
begin
  perform faultline.be_durable();
  -- An update and not a lock: the new row version carries the number of the savepoint, or that of the transaction.
  -- A lock that the transaction has already would stay as it is, with the number of the place where it was taken.
  update faultline.active as job
  set claimed_at = job.claimed_at
  where job.id    = fence_in.job_id
    and job.token = fence_in.token
    and job.claim = fence_in.claim
  returning job.xmin = pg_current_xact_id()::xid into outside;

  if not found then
    perform faultline.refuse(fence_in.job_id, fence_in.token);   -- raises LS001: lease lost
  end if;

  if not outside and not coalesce(fence_in.savepoint, false) then
    raise exception 'job % was to be settled inside a savepoint', fence_in.job_id
      using errcode = 'LS006',
            hint = 'Settle it outside: a refusal swallowed inside a savepoint does not stop the outer commit. '
              'savepoint => true allows it, for tests that are wrapped in a transaction.';
  end if;
end;
$$;
