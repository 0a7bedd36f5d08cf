-- NothingLost: the lane of a waiting job exists. No claim and no watchdog finds a job in a lane that does not.
with standing as (
  select job.id, job.lane from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.lane from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.lane from faultline.dead as job where job.id >= %(low)s and job.id < %(high)s
)
select standing.id as job_id, format('it waits in lane %%s, which does not exist', standing.lane) as told, true as sure
from standing
where not exists (select from faultline.lanes as lane where lane.id = standing.lane)
limit %(most)s
