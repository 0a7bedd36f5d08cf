-- LedgerReplays: a job keeps task, lane, max_attempts and created_at for life; no transition changes them.
with told as (
  select entry.job_id, entry.task::text collate "C" as task, entry.lane, entry.max_attempts, entry.created_at
  from faultline.ledger as entry where entry.job_id >= %(low)s and entry.job_id < %(high)s
  union all
  select job.id, job.task::text collate "C", job.lane, job.max_attempts, job.created_at
  from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.task::text collate "C", job.lane, job.max_attempts, job.created_at
  from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.task::text collate "C", job.lane, job.max_attempts, job.created_at
  from faultline.dead as job where job.id >= %(low)s and job.id < %(high)s
)
select told.job_id,
       concat_ws('; ',
         case when min(told.task) <> max(told.task) then format('its task is %%s and %%s', min(told.task), max(told.task)) end,
         case when min(told.lane) <> max(told.lane) then format('its lane is %%s and %%s', min(told.lane), max(told.lane)) end,
         case when min(told.max_attempts) <> max(told.max_attempts)
              then format('its max_attempts is %%s and %%s', min(told.max_attempts), max(told.max_attempts)) end,
         case when min(told.created_at) <> max(told.created_at) then 'its created_at is told in two ways' end) as told,
       true as sure
from told
group by told.job_id
having (min(told.task), min(told.lane), min(told.max_attempts), min(told.created_at))
    is distinct from (max(told.task), max(told.lane), max(told.max_attempts), max(told.created_at))
limit %(most)s
