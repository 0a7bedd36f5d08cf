-- The ledger's entries for the last leases of a job, oldest first; with `before`, those of the leases before that token.
-- A worker that takes and releases a job makes an entry each time, so a job can have any number.
create function faultline.history(job_id bigint, before bigint default null, most int default 1000)
returns setof faultline.entries
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select * from (
    select *
    from faultline.entries as entry
    where entry.job_id = history.job_id and (history.before is null or entry.token < history.before)
    order by entry.token desc, entry.settled_at desc
    limit least(greatest(history.most, 1), 10000)
  ) as entry
  order by entry.token, entry.settled_at;
end;
$$;
