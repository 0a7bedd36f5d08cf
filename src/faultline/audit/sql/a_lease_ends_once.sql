-- OwnerIsOne: a lease ends once, and no row holds a lease that has ended.
with leases as (
  select entry.job_id, entry.claim, entry.token, 0 as held
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.claim is not null
  union all
  select job.id, job.claim, job.token, 1
  from faultline.active as job
  where job.id >= %(low)s and job.id < %(high)s
    and job.claim is not null
)
select leases.job_id,
       format('a lease ended %%s times, with tokens from %%s to %%s%%s', count(*) - sum(leases.held),
              min(leases.token), max(leases.token), case when sum(leases.held) > 0 then ', and is still held' end) as told,
       true as sure
from leases
group by leases.job_id, leases.claim
having count(*) > 1
limit %(most)s
