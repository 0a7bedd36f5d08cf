-- NoZombie: whoever succeeded held the newest token of the job; nobody had been given a higher one.
with success as (
  select entry.job_id, entry.token
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.outcome = 'succeeded'
),
newer as (
  select entry.job_id, entry.token, 'ended ' || entry.outcome as what
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.token < 2305843009213693952
  union all
  select noted.job_id, noted.current_token, 'was the newest when a late write was refused'
  from faultline.refusals as noted
  where noted.job_id >= %(low)s and noted.job_id < %(high)s
    and noted.current_token < 2305843009213693952
  union all
  select job.id, job.token, 'is on its row'
  from faultline.active as job
  where job.id >= %(low)s and job.id < %(high)s
)
select success.job_id,
       format('token %%s succeeded, and token %%s %%s', success.token, newer.token, newer.what) as told,
       true as sure
from success
join newer on newer.job_id = success.job_id and newer.token > success.token
limit %(most)s
