-- For refused leases, named by job and token: how many seconds a newer lease existed at their last attempt to write.
create function faultline.zombies(ids bigint[], tokens bigint[])
returns table (seconds double precision)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select greatest(0, extract(epoch from tried.last_at - newer.claimed_at))::double precision
  from unnest(zombies.ids, zombies.tokens) as named (id, token)
  cross join lateral (
    select max(noted.last_at) as last_at
    from faultline.refusals as noted
    where noted.job_id = named.id and noted.token = named.token
  ) as tried
  cross join lateral (
    select min(later.claimed_at) as claimed_at
    from (
      select job.claimed_at from faultline.active as job where job.id = named.id and job.token > named.token
      union all
      select entry.claimed_at from faultline.ledger as entry where entry.job_id = named.id and entry.token > named.token
    ) as later
  ) as newer
  where tried.last_at is not null and newer.claimed_at is not null;
end;
$$;
