-- TerminalStays: after its end a job stands in no table, has no newer lease and no second end.
with ended as (
  select entry.job_id, entry.slot, entry.token, entry.outcome
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.outcome in ('succeeded', 'cancelled')
),
after_it as (
  select job.id, case when job.claim is null then 'queued again' else 'running again' end as what, null::bigint as above
  from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, 'queued again for later', null
  from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, 'dead as well', null
  from faultline.dead as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select entry.job_id, format('token %%s %%s after it', entry.token, entry.outcome), entry.token
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.token < 2305843009213693952
)
select ended.job_id, format('%%s with token %%s, and %%s', ended.outcome, ended.token, after_it.what) as told, true as sure
from ended
join after_it on after_it.id = ended.job_id and coalesce(after_it.above > ended.token, true)
union all
select ended.job_id, format('it ended %%s times: %%s', count(*), string_agg(ended.outcome::text, ', ' order by ended.token)), true
from ended
group by ended.job_id
having count(*) > 1
limit %(most)s
