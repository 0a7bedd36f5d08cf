-- How far behind each queue is: the age of its first due job, or of its first late scheduled job if that is older.
create view faultline.queue_lag as
select owner.name::text as queue,
       extract(epoch from faultline.now() - least(first_due.created_at, first_late.run_at))::double precision as lag_seconds
from faultline.queues as owner
left join lateral (
  select min(first.created_at) as created_at
  from faultline.lanes as lane
  cross join lateral (
    select coalesce(job.due_at, job.created_at) as created_at
    from faultline.active as job
    where job.lane = lane.id and job.pos >= lane.floor and job.claim is null
    order by job.pos
    limit 1
  ) as first
  where lane.queue = owner.name
) as first_due on true
-- One pass for all queues, and now() in a subquery so that the index is used: without both, 10,000 queues with one job each took 16 s.
left join (
  select lane.queue, min(job.run_at) as run_at
  from faultline.later as job
  join faultline.lanes as lane on lane.id = job.lane
  where job.run_at <= (select faultline.now()) and job.place is null   -- a job at the gate of its limit waits on purpose
  group by lane.queue
) as first_late on first_late.queue = owner.name;
