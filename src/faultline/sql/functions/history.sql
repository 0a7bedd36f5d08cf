-- What became of each lease of a job, oldest first.
create function faultline.history(job_id bigint)
returns setof faultline.entries
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select * from faultline.entries as entry where entry.job_id = history.job_id order by entry.token, entry.settled_at;
end;
$$;
