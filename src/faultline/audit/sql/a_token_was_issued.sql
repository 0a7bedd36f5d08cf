-- TokenGrows: nobody holds a token above all that this server and those before it can have issued.
with ceiling as (
  select (setting.base + setting.timeline) << 40 as token from faultline.settings as setting
),
held as (
  select job.id, job.token, 'its row' as whose
  from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.token, 'its row' from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select entry.job_id, entry.token, 'its lease that ended ' || entry.outcome
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and not (entry.outcome = 'dead' and entry.token >= 2305843009213693952)   -- found and buried by quarantine
)
select held.id as job_id,
       format('%%s has token %%s, which was never issued', held.whose, held.token) as told,
       true as sure
from held
join ceiling on held.token >= ceiling.token
limit %(most)s
