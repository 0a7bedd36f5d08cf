-- The refused writes of one job or of all jobs, newest first.
create function faultline.list_refusals(job_id bigint default null, most int default 50)
returns setof faultline.refused_writes
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select *
  from faultline.refused_writes as noted
  where list_refusals.job_id is null or noted.job_id = list_refusals.job_id
  order by noted.last_at desc
  limit list_refusals.most;
end;
$$;
