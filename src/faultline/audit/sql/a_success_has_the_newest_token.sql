-- NoZombie: a success has the newest token of its job; no lease of the job has a higher one.
with success as (
  select entry.job_id, entry.token
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.outcome = 'succeeded'
),
newer as (
  select entry.job_id, entry.token, entry.outcome, null as whose
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.token < 2305843009213693952
  union all
  select noted.job_id, noted.current_token, null, 'was the newest when a late write was refused'
  from faultline.refusals as noted
  where noted.job_id >= %(low)s and noted.job_id < %(high)s
    and noted.current_token < 2305843009213693952
  union all
  select job.id, job.token, null, 'is on its row'
  from faultline.active as job
  where job.id >= %(low)s and job.id < %(high)s
)
select success.job_id,
       format('token %%s succeeded, and token %%s %%s', success.token, newer.token,
              coalesce(newer.whose, 'ended ' || newer.outcome)) as told,
       true as sure
from success
join newer on newer.job_id = success.job_id and newer.token > success.token
limit %(most)s
