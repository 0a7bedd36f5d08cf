-- NothingLost: a job whose enqueue was answered is somewhere, unless retention or its queue let it go.
with dropped as (
  select number.range
  from (
    select generate_series(0, max(substring(part.relname from '^ledger_([0-9]+)$')::bigint)) as range
    from pg_inherits as link
    join pg_class as part on part.oid = link.inhrelid
    where link.inhparent = 'faultline.ledger'::regclass
  ) as number
  where to_regclass('faultline.ledger_' || number.range) is null
)
select told.id as job_id, 'its enqueue was answered, and there is no trace of it' as told,
       not exists (select from faultline.lanes as lane where lane.keep = 'nothing') as sure
from unnest(%(acknowledged)s::bigint[]) as told (id)
where not exists (select from faultline.active as job where job.id = told.id and job.id between %(first)s and %(last)s)
  and not exists (select from faultline.later as job where job.id = told.id and job.id between %(first)s and %(last)s)
  and not exists (select from faultline.dead as job where job.id = told.id and job.id between %(first)s and %(last)s)
  and not exists (
    select from faultline.ledger as entry where entry.job_id = told.id and entry.job_id between %(first)s and %(last)s)
  and told.id / 1000000 not in (select dropped.range from dropped)
limit %(most)s
