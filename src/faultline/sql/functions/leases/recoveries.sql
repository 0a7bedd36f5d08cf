-- For new leases, named by job and token: the seconds since the job's last lease was found expired.
-- There is no row if that lease ended in another way. A claim after an expired lease is a takeover.
create function faultline.recoveries(ids bigint[], tokens bigint[])
returns table (seconds double precision)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select greatest(0, extract(epoch from mine.claimed_at - before.settled_at))::double precision
  from unnest(recoveries.ids, recoveries.tokens) as named (id, token)
  cross join lateral (
    select entry.outcome, entry.settled_at
    from faultline.ledger as entry
    where entry.job_id = named.id and entry.slot > 0 and entry.slot < named.token   -- a slot is the token, or 0
    order by entry.slot desc
    limit 1
  ) as before
  cross join lateral (
    select job.claimed_at from faultline.active as job where job.id = named.id and job.token = named.token
    union all
    select entry.claimed_at
    from faultline.ledger as entry
    where entry.job_id = named.id and entry.slot in (0, named.token) and entry.token = named.token
    limit 1
  ) as mine
  where before.outcome = 'expired';
end;
$$;
