-- NothingLost: a job whose last lease did not end it stands in a table; a dead one, until its retention has passed.
-- Where a queue keeps nothing of successes, a job that is nowhere may have succeeded. What it kept in former days
-- nobody has written down, but its row tells whether it was changed since the lease ended: then it is a remark.
with told as (
  select distinct on (entry.job_id) entry.job_id, entry.token, entry.outcome, entry.settled_at, entry.lane,
         age(entry.xmin) as written,
         bool_or(entry.outcome in ('succeeded', 'cancelled')) over (partition by entry.job_id) as ended
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
  order by entry.job_id, entry.token desc, entry.slot
)
select told.job_id,
       format('its last lease, token %%s, ended %%s, and it stands nowhere', told.token, told.outcome) as told,
       not coalesce(age(owner.xmin) < told.written, false) as sure
from told
left join faultline.lanes as lane on lane.id = told.lane
left join faultline.queues as owner on owner.name = lane.queue
cross join faultline.settings as setting
where not told.ended
  and lane.keep is distinct from 'nothing'
  and not (told.outcome = 'dead' and told.settled_at < faultline.now() - setting.dead_retention)
  and not exists (select from faultline.active as job where job.id = told.job_id)
  and not exists (select from faultline.later as job where job.id = told.job_id)
  and not exists (select from faultline.dead as job where job.id = told.job_id)
limit %(most)s
