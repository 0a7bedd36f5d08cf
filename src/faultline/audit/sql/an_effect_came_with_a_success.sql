-- OneEffect: a job without a success has no effect, because its rows and its success commit together.
with standing as (
  select job.id, case when job.claim is null then 'queued' else 'running' end as state from faultline.active as job
  union all
  select job.id, 'queued' from faultline.later as job
  union all
  select job.id, 'dead' from faultline.dead as job
  union all
  select entry.job_id, 'cancelled' from faultline.ledger as entry where entry.slot = 0 and entry.outcome = 'cancelled'
)
select effect_row.job_id, format('token %%s left an effect, and the job is %%s', effect_row.token, standing.state) as told, true as sure
from {effects} as effect_row
join standing on standing.id = effect_row.job_id
where not exists (
  select from faultline.ledger as success
  where success.job_id = effect_row.job_id and success.outcome = 'succeeded')
limit %(most)s
