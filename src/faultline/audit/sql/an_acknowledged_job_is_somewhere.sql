-- NothingLost: a job whose enqueue was answered is somewhere, unless retention or its queue let it go.
-- Retention drops a range of the ledger once its every job has ended so long ago: it explains what was answered before that, or at
-- a moment that was not noted. Where some queue keeps nothing, a job that is nowhere may have succeeded there.
with dropped as (
  select number.range
  from (
    select generate_series(0, max(substring(part.relname from '^ledger_([0-9]+)$')::bigint)) as range
    from pg_inherits as link
    join pg_class as part on part.oid = link.inhrelid
    where link.inhparent = 'faultline.ledger'::regclass
  ) as number
  where to_regclass('faultline.ledger_' || number.range) is null
),
nowhere as (
  select told.id, told.id / 1000000 in (select dropped.range from dropped)
                  and (told.at is null or told.at < faultline.now() - setting.ledger_retention) as pruned
  from unnest(%(acknowledged)s::bigint[], %(moments)s::timestamptz[]) as told (id, at)
  cross join faultline.settings as setting
  where not exists (select from faultline.active as job where job.id = told.id and job.id between %(first)s and %(last)s)
    and not exists (select from faultline.later as job where job.id = told.id and job.id between %(first)s and %(last)s)
    and not exists (select from faultline.dead as job where job.id = told.id and job.id between %(first)s and %(last)s)
    and not exists (
      select from faultline.ledger as entry where entry.job_id = told.id and entry.job_id between %(first)s and %(last)s)
)
select nowhere.id as job_id,
       case when nowhere.pruned then 'its enqueue was answered, and retention dropped its range of the ledger'
            else 'its enqueue was answered, and there is no trace of it' end as told,
       not nowhere.pruned and not exists (select from faultline.lanes as lane where lane.keep = 'nothing') as sure
from nowhere
order by nowhere.pruned, nowhere.id
limit %(most)s
