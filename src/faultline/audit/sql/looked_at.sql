-- The number of rows to check in a range: a check that saw no rows proves nothing.
select held.jobs + ended.ends as jobs, ended.entries, held.running, ended.successes
from (
  select count(*) as jobs, count(job.claim) as running
  from (
    select job.claim from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
    union all
    select null from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
    union all
    select null from faultline.dead as job where job.id >= %(low)s and job.id < %(high)s
  ) as job
) as held
cross join (
  select count(*) as entries,
         count(*) filter (where entry.outcome in ('succeeded', 'cancelled')) as ends,
         count(*) filter (where entry.outcome = 'succeeded') as successes
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
) as ended
