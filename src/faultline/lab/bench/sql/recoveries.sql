-- For each lease that ran out: whose it was, and when another worker began the job.
select worker.name, extract(epoch from next.claimed_at)::float8 as claimed_again_at
from faultline.ledger as lost
join faultline.workers as worker on worker.id = lost.worker
cross join lateral (
  select entry.claimed_at
  from faultline.ledger as entry
  where entry.job_id = lost.job_id and entry.token > lost.token
  order by entry.token
  limit 1
) as next
where lost.outcome = 'expired'
