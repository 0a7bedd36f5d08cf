-- NoZombie: a success belongs to a lease; without a lease it cannot have passed the fence.
select entry.job_id,
       format('it succeeded with token %%s, and without %%s', entry.token,
              case when entry.claim is null then 'a claim' else 'a moment of its claim' end) as told,
       true as sure
from faultline.ledger as entry
where entry.job_id >= %(low)s and entry.job_id < %(high)s
  and entry.outcome = 'succeeded'
  and (entry.claim is null or entry.claimed_at is null)
limit %(most)s
