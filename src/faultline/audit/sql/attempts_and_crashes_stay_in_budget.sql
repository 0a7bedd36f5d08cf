-- WithinBudget: attempts stay within their budget, a crash is also an attempt, a crash alone is also a crash, and no job died of its
-- attempts while it had some left.
with counted as (
  select job.id, job.attempt, job.max_attempts, job.crashes, coalesce(job.crashes_alone, 0) as alone, job.claim is null as waits, false as starved, 'its row' as whose
  from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.attempt, job.max_attempts, job.crashes, coalesce(job.crashes_alone, 0), true, false, 'its row'
  from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.attempt, job.max_attempts, job.crashes, coalesce(job.crashes_alone, 0), false, job.reason = 'out of attempts', 'its row'
  from faultline.dead as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select entry.job_id, entry.attempt, entry.max_attempts, entry.crashes, 0, false, false, 'token ' || entry.token
  from faultline.ledger as entry where entry.job_id >= %(low)s and entry.job_id < %(high)s
)
select counted.id as job_id,
       format('%%s says attempt %%s of %%s, %%s crashes (%%s alone)%%s', counted.whose, counted.attempt, counted.max_attempts, counted.crashes, counted.alone,
              case when counted.starved then ', dead of its attempts' when counted.waits then ', and it waits' else '' end) as told,
       true as sure
from counted
where counted.attempt not between 0 and counted.max_attempts
   or counted.crashes not between 0 and counted.attempt
   or counted.alone not between 0 and counted.crashes
   or (counted.waits and counted.attempt >= counted.max_attempts)
   or (counted.starved and counted.attempt < counted.max_attempts)
limit %(most)s
