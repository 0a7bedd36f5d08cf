-- The workers that run now or ran recently.
create view faultline.worker_list as
select worker.id, worker.name, worker.host, worker.pid, worker.queues, worker.jobs_max, worker.version,
       worker.started_at, worker.seen_at, worker.stopped_at, coalesce(held.running, 0) as running
from faultline.workers as worker
left join (
  select job.claimed_by, count(*) as running from faultline.active as job where job.claim is not null group by job.claimed_by
) as held on held.claimed_by = worker.id;
