-- The seconds until the next scheduled job is due, or the next token of a rate for which jobs wait; null when there is neither.
create function faultline.next_due()
returns double precision
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return least(
    (
      select extract(epoch from job.run_at - faultline.now())
      from faultline.later as job
      where job.place is null
      order by job.run_at
      limit 1
    ),
    faultline.next_token());
end;
$$;
