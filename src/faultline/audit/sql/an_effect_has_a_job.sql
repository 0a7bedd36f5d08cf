-- NothingLost: the job of an effect is somewhere, unless retention or its queue let it go.
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
select effect_row.job_id, format('token %%s left an effect, and there is no trace of the job', effect_row.token) as told, true as sure
from {effects} as effect_row
where not exists (select from faultline.lanes as lane where lane.keep = 'nothing')
  and not exists (select from faultline.active as job where job.id = effect_row.job_id)
  and not exists (select from faultline.later as job where job.id = effect_row.job_id)
  and not exists (select from faultline.dead as job where job.id = effect_row.job_id)
  and not exists (select from faultline.ledger as entry where entry.job_id = effect_row.job_id)
  and effect_row.job_id / 1000000 not in (select dropped.range from dropped)
limit %(most)s
