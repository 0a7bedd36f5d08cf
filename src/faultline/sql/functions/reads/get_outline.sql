-- One job without its payload; no row when there is none.
-- For roles that may not see a payload.
create function faultline.get_outline(job_id bigint)
returns setof faultline.outlines
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select * from faultline.outlines as job where job.id = get_outline.job_id;
end;
$$;
