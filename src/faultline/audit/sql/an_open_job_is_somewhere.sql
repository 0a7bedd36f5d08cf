-- NothingLost: a job whose last lease did not end it is in a table; a dead job is, until its retention has passed.
-- Where a queue keeps nothing of successes, an absent job may have succeeded. Earlier retention settings are not recorded, but the row of
-- the queue tells whether it changed since the lease ended: then the finding is a remark.
with open as (
  select distinct on (entry.job_id) entry.job_id, entry.token, entry.outcome, entry.settled_at, entry.lane,
         age(entry.xmin) as written
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.outcome not in ('succeeded', 'cancelled')
    and not exists (
      select from faultline.ledger as ending
      where ending.job_id = entry.job_id and ending.outcome in ('succeeded', 'cancelled')
        and ending.job_id >= %(low)s and ending.job_id < %(high)s)
  order by entry.job_id, entry.token desc
)
select open.job_id,
       format('its last lease, token %%s, ended %%s, and it stands nowhere', open.token, open.outcome) as told,
       not coalesce(age(owner.xmin) < open.written, false) as sure
from open
left join faultline.lanes as lane on lane.id = open.lane
left join faultline.queues as owner on owner.name = lane.queue
where lane.keep is distinct from 'nothing'
  and not (open.outcome = 'dead'
           and open.settled_at < faultline.now() - (select setting.dead_retention from faultline.settings as setting))
  and not exists (
    select from faultline.active as job where job.id = open.job_id and job.id >= %(low)s and job.id < %(high)s)
  and not exists (
    select from faultline.later as job where job.id = open.job_id and job.id >= %(low)s and job.id < %(high)s)
  and not exists (
    select from faultline.dead as job where job.id = open.job_id and job.id >= %(low)s and job.id < %(high)s)
limit %(most)s
