-- OwnerIsOne: a lease begins after the one before it has ended. This compares clock times, so it is only a remark: a clock that was set
-- back shows the same.
with leases as (
  select entry.job_id, entry.token, entry.claimed_at, entry.settled_at
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.claim is not null
  union all
  select job.id, job.token, job.claimed_at, null
  from faultline.active as job
  where job.id >= %(low)s and job.id < %(high)s
    and job.claim is not null
),
in_order as (
  select leases.job_id, leases.token, leases.claimed_at,
         lag(leases.token) over by_token as before, lag(leases.settled_at) over by_token as ended_at
  from leases
  window by_token as (partition by leases.job_id order by leases.token)
)
select in_order.job_id,
       format('token %%s was claimed %%s s before token %%s ended, or the clock was set back', in_order.token,
              round(extract(epoch from in_order.ended_at - in_order.claimed_at), 3), in_order.before) as told,
       false as sure
from in_order
where in_order.claimed_at < in_order.ended_at
limit %(most)s
