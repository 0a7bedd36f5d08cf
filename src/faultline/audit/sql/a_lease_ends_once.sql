-- OwnerIsOne: a lease ends once, and what has ended is held by nobody.
with leases as (
  select entry.job_id, entry.claim, entry.token, entry.outcome::text as what
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.claim is not null
  union all
  select job.id, job.claim, job.token, 'running'
  from faultline.active as job
  where job.id >= %(low)s and job.id < %(high)s
    and job.claim is not null
)
select leases.job_id,
       format('one lease is told of %%s times: %%s', count(*),
              string_agg(format('token %%s %%s', leases.token, leases.what), ', ' order by leases.token)) as told,
       true as sure
from leases
group by leases.job_id, leases.claim
having count(*) > 1
limit %(most)s
