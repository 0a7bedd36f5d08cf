-- The workers that are there, or were lately.
create view faultline.worker_list as
select worker.id, worker.name, worker.host, worker.pid, worker.queues, worker.jobs_max, worker.version,
       worker.started_at, worker.seen_at, worker.stopped_at,
       (select count(*) from faultline.active as job where job.claimed_by = worker.id and job.claim is not null) as running
from faultline.workers as worker;
