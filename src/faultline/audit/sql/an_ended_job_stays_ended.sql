-- TerminalStays: a job that has ended is in no table, and has no newer lease and no second end.
with ended as (
  select entry.job_id, entry.token, entry.outcome
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.outcome in ('succeeded', 'cancelled')
),
standing as (
  select job.id, case when job.claim is null then 'queued again' else 'running again' end as what
  from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, 'queued again for later' from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, 'dead as well' from faultline.dead as job where job.id >= %(low)s and job.id < %(high)s
)
select ended.job_id, format('it %%s with token %%s, and is %%s', ended.outcome, ended.token, standing.what) as told, true as sure
from ended
join standing on standing.id = ended.job_id
union all
select ended.job_id,
       format('it %%s with token %%s, and token %%s %%s after it', ended.outcome, ended.token, newer.token, newer.outcome), true
from ended
join faultline.ledger as newer on newer.job_id = ended.job_id and newer.token > ended.token
where newer.job_id >= %(low)s and newer.job_id < %(high)s
  and newer.token < 2305843009213693952
union all
select ended.job_id, format('it ended %%s times, with tokens from %%s to %%s', count(*), min(ended.token), max(ended.token)), true
from ended
group by ended.job_id
having count(*) > 1
limit %(most)s
