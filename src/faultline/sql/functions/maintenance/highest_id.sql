-- The highest job id in any table; 0 when there is no job.
create function faultline.highest_id()
returns bigint
language sql
volatile
as $$
  select greatest(
    0,
    (select max(job.id) from faultline.active as job),
    (select max(job.id) from faultline.later as job),
    (select max(job.id) from faultline.dead as job),
    (select max(entry.job_id) from faultline.ledger as entry))
$$;
