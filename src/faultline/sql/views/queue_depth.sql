-- How many jobs each queue has in each state.
create view faultline.queue_depth as
select owner.name::text as queue, owner.paused_at is not null as paused, owner.keep::text as keep,
       coalesce(active.due, 0) + coalesce(later.at_gate, 0) as due, coalesce(active.running, 0) as running,
       coalesce(later.waiting, 0) as scheduled, coalesce(dead.buried, 0) as dead
from faultline.queues as owner
left join (
  select lane.queue, count(*) filter (where job.claim is null) as due, count(job.claim) as running
  from faultline.active as job join faultline.lanes as lane on lane.id = job.lane group by lane.queue
) as active on active.queue = owner.name
left join (
  select lane.queue, count(*) filter (where job.place is null) as waiting, count(job.place) as at_gate
  from faultline.later as job join faultline.lanes as lane on lane.id = job.lane group by lane.queue
) as later on later.queue = owner.name
left join (
  select lane.queue, count(*) as buried
  from faultline.dead as job join faultline.lanes as lane on lane.id = job.lane group by lane.queue
) as dead on dead.queue = owner.name;
