-- In how many seconds the next waiting job falls due; null when none waits.
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
