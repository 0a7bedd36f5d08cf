-- The table that holds a job: active, later, dead, ended (the ledger) or null.
-- A move between tables is one transaction, so one statement with one snapshot sees the job in exactly one place.
create function faultline.where_is(job_id bigint)
returns text
language plpgsql
volatile
as $$
begin
  return (
    select place
    from (
      select 'active' as place from faultline.active as job where job.id = where_is.job_id
      union all
      select 'later' from faultline.later as job where job.id = where_is.job_id
      union all
      select 'dead' from faultline.dead as job where job.id = where_is.job_id
      union all
      select 'ended' from faultline.ledger as entry where entry.job_id = where_is.job_id and entry.slot = 0
    ) as places
    limit 1);
end;
$$;
