-- TokenGrows: the row of a job has its newest token. While the job runs, the token is higher than that of any ended lease.
with standing as (
  select job.id, job.token, job.claim is not null as running
  from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.token, false from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.token, false from faultline.dead as job where job.id >= %(low)s and job.id < %(high)s
),
seen as (
  select entry.job_id, max(entry.token) as token, 'a lease that ended' as whose
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
  group by entry.job_id
  union all
  select noted.job_id, max(noted.current_token), 'the one that refused a late write'
  from faultline.refusals as noted
  where noted.job_id >= %(low)s and noted.job_id < %(high)s
  group by noted.job_id
)
select standing.id as job_id,
       format('its row has token %%s, and %%s had %%s', standing.token, seen.whose, seen.token) as told,
       true as sure
from standing
join seen on seen.job_id = standing.id
where (standing.token < seen.token
       or (standing.running and standing.token = seen.token and seen.whose = 'a lease that ended'))
  -- Quarantine buried a token that was out of range: a replay of such a job starts below it.
  and not exists (
    select from faultline.ledger as damaged
    where damaged.job_id = standing.id and damaged.token >= 2305843009213693952
      and damaged.job_id >= %(low)s and damaged.job_id < %(high)s)
limit %(most)s
