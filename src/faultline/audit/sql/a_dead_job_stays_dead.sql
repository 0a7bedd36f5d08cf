-- TerminalStays: a dead job comes back by a replay only, and a replay starts with the first attempt.
with newest as (
  select distinct on (entry.job_id) entry.job_id, entry.token, entry.outcome
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
  order by entry.job_id, entry.token desc, entry.slot
),
back as (
  select job.id, job.attempt, job.crashes, (job.claim is not null)::int as begun
  from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.attempt, job.crashes, 0
  from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
)
select back.id as job_id,
       format('it died with token %%s, and is back in attempt %%s after %%s crashes: no replay does that',
              newest.token, back.attempt, back.crashes) as told,
       true as sure
from back
join newest on newest.job_id = back.id and newest.outcome = 'dead'
where back.attempt <> back.begun or back.crashes <> 0
limit %(most)s
