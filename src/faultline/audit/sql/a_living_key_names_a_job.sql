-- NothingLost: a key whose window has not begun names a job that has not ended.
select named.job_id,
       'its key is held for it, and it stands nowhere' as told,
       true as sure
from faultline.keys as named
where named.until is null
  and not exists (select from faultline.active as job where job.id = named.job_id)
  and not exists (select from faultline.later as job where job.id = named.job_id)
  and not exists (select from faultline.dead as job where job.id = named.job_id)
  and not exists (
    select from faultline.ledger as entry
    where entry.job_id = named.job_id and entry.outcome in ('succeeded', 'cancelled'))
limit %(most)s
