-- OneEffect: a job has at most one success.
select entry.job_id,
       format('it succeeded %%s times, with tokens from %%s to %%s', count(*), min(entry.token), max(entry.token)) as told,
       true as sure
from faultline.ledger as entry
where entry.job_id >= %(low)s and entry.job_id < %(high)s
  and entry.outcome = 'succeeded'
group by entry.job_id
having count(*) > 1
limit %(most)s
