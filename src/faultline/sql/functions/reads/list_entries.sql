-- The newest entries of the ledger: by job, newest first, with all leases of a job together.
create function faultline.list_entries(most int default 50)
returns setof faultline.entries
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select * from faultline.entries as entry order by entry.job_id desc, entry.token desc limit list_entries.most;
end;
$$;
