-- TokenGrows: no two leases of a job have the same token, and every lease has one.
select entry.job_id, format('token %%s stands on %%s of its leases', entry.token, count(*)) as told, true as sure
from faultline.ledger as entry
where entry.job_id >= %(low)s and entry.job_id < %(high)s
  and entry.claim is not null   -- cancelled while it waited: an end, but no lease
group by entry.job_id, entry.token
having count(*) > 1 or entry.token < 1
limit %(most)s
