-- How far behind each queue is: the age of its first due job, and of the first waiting job whose moment has come.
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
-- Once for all queues, and the moment as a query of its own, so that it is found by its index: 10,000 queues with a job each took 16 s.
left join (
  select lane.queue, min(job.run_at) as run_at
  from faultline.later as job
  join faultline.lanes as lane on lane.id = job.lane
  where job.run_at <= (select faultline.now())
  group by lane.queue
) as first_late on first_late.queue = owner.name;
