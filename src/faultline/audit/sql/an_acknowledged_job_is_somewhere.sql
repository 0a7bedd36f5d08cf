-- NothingLost: a job whose enqueue was answered exists, unless retention or its queue removed it.
-- Retention drops a range of the ledger when all its jobs ended long enough ago. A missing range explains the absence of jobs that were
-- answered before that, or at a moment that was not noted. In a database younger than its retention nothing was dropped: there a missing
-- range was never made. Where a queue keeps nothing, an absent job may have succeeded there.
with forgets as (
  select faultline.now() - setting.ledger_retention as until,
         (select first.applied_at from faultline.migrations as first where first.number = 1) as since
  from faultline.settings as setting
),
nowhere as (
  select told.id, to_regclass('faultline.ledger_' || told.id / 1000000) is null
                  and coalesce(told.at, forgets.since) < forgets.until as pruned
  from unnest(%(acknowledged)s::bigint[], %(moments)s::timestamptz[]) as told (id, at)
  cross join forgets
  where not exists (select from faultline.active as job where job.id = told.id and job.id between %(first)s and %(last)s)
    and not exists (select from faultline.later as job where job.id = told.id and job.id between %(first)s and %(last)s)
    and not exists (select from faultline.dead as job where job.id = told.id and job.id between %(first)s and %(last)s)
    and not exists (
      select from faultline.ledger as entry where entry.job_id = told.id and entry.job_id between %(first)s and %(last)s)
)
select nowhere.id as job_id,
       case when nowhere.pruned then 'its enqueue was answered, and retention may have dropped its range of the ledger'
            else 'its enqueue was answered, and there is no trace of it' end as told,
       not nowhere.pruned and not exists (select from faultline.lanes as lane where lane.keep = 'nothing') as sure
from nowhere
order by nowhere.pruned, nowhere.id
limit %(most)s
