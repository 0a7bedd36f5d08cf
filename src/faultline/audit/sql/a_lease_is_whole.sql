-- OwnerIsOne: a running job has every part of a lease, a waiting job has none.
select job.id as job_id,
       format('it has half a lease: %%s of claim, lease_until, claimed_at, deadline_at, and token %%s',
              num_nonnulls(job.claim, job.lease_until, job.claimed_at, job.deadline_at), job.token) as told,
       true as sure
from faultline.active as job
where job.id >= %(low)s and job.id < %(high)s
  and (num_nonnulls(job.claim, job.lease_until, job.claimed_at, job.deadline_at) not in (0, 4)
       or (job.claim is not null and job.token < 1))
limit %(most)s
