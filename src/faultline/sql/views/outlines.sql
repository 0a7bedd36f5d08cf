-- Every job without its payload: no args, no result, no key, no error text. For monitoring, and for producers.
create view faultline.outlines as
select job.id, job.state, job.task, job.queue, job.priority, job.attempt, job.max_attempts, job.crashes, job.run_at,
       job.created_at, job.claimed_at, job.lease_until, job.finished_at, job.worker, job.token
from faultline.jobs as job;
