-- The outcome of a lease whose settling call got no answer, read under the row's lock on the primary.
-- `running`: nothing was committed, and the lease is still valid. `gone`: no row has the answer. Any other value is the lease's end.
create function faultline.outcome(job_id bigint, token bigint, claim uuid)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  ended faultline.lease_end;
begin
  -- The lock waits for a backend that is still committing: a plain read could miss its commit.
  perform from faultline.active as job
  where job.id    = outcome.job_id
    and job.token = outcome.token
    and job.claim = outcome.claim
  for no key update;

  if found then
    return 'running';
  end if;

  select entry.outcome into ended
  from faultline.ledger as entry
  where entry.job_id = outcome.job_id
    and entry.slot in (0, outcome.token)
    and entry.token = outcome.token
    and entry.claim = outcome.claim;
  if found then
    perform faultline.read_durably();
  end if;
  return coalesce(ended::text, 'gone');
end;
$$;
