-- The seconds until the next scheduled job is due; null when there is none.
create function faultline.next_due()
returns double precision
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select extract(epoch from job.run_at - faultline.now())
    from faultline.later as job
    order by job.run_at
    limit 1);
end;
$$;
