-- LedgerReplays: a row in `active`, `later` or `dead` is where its last lease put it, with that lease's token and counts.
with standing as (
  select job.id, job.token, job.attempt, job.crashes, (job.claim is not null)::int as begun, 'active' as place
  from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.token, job.attempt, job.crashes, 0, 'later'
  from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.token, job.attempt, job.crashes, 0, 'dead'
  from faultline.dead as job where job.id >= %(low)s and job.id < %(high)s
),
newest as (
  select distinct on (entry.job_id) entry.job_id, entry.token, entry.outcome, entry.attempt, entry.crashes,
         bool_or(entry.token >= 2305843009213693952) over (partition by entry.job_id) as damaged
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
  order by entry.job_id, entry.token desc, entry.slot
),
replayed as (
  select standing.*, newest.outcome, coalesce(newest.token, 0) as token_left,
         case when newest.outcome in ('snoozed', 'released') then newest.attempt - 1
              when newest.outcome = 'dead' and standing.place <> 'dead' then 0
              else coalesce(newest.attempt, 0) end as attempt_left,
         case when newest.outcome = 'dead' and standing.place <> 'dead' then 0 else coalesce(newest.crashes, 0) end as crashes_left
  from standing
  left join newest on newest.job_id = standing.id
  where newest.damaged is not true
)
select replayed.id as job_id,
       format('its row in %%s has token %%s, attempt %%s, %%s crashes; its last lease (%%s) left token %%s, attempt %%s, %%s crashes',
              replayed.place, replayed.token, replayed.attempt, replayed.crashes, coalesce(replayed.outcome::text, 'none'),
              replayed.token_left, replayed.attempt_left, replayed.crashes_left) as told,
       true as sure
from replayed
where (replayed.begun = 0 and replayed.token <> replayed.token_left)
   or replayed.attempt <> replayed.attempt_left + replayed.begun
   or replayed.crashes <> replayed.crashes_left
   or (replayed.place = 'dead' and replayed.outcome is distinct from 'dead')
limit %(most)s
