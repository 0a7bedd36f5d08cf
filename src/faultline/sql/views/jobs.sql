-- Every job, wherever it stands. The claim is in no view: whoever knows it may act on the job.
create view faultline.jobs as
select job.id, case when job.claim is null then 'queued' else 'running' end as state,
       job.task::text as task, lane.queue::text as queue, lane.priority::int as priority, job.args::jsonb as args, null::jsonb as result,
       job.attempt::int as attempt, job.max_attempts::int as max_attempts, job.crashes::int as crashes,
       job.created_at as run_at, job.created_at, job.claimed_at, job.lease_until, null::timestamptz as finished_at,
       worker.name as worker, job.token, job.error, job.key::text as key
from faultline.active as job
join faultline.lanes as lane on lane.id = job.lane
left join faultline.workers as worker on worker.id = job.claimed_by
union all
select job.id, 'queued', job.task, lane.queue, lane.priority, job.args::jsonb, null, job.attempt, job.max_attempts, job.crashes,
       job.run_at, job.created_at, null, null, null, null, job.token, job.error, job.key
from faultline.later as job
join faultline.lanes as lane on lane.id = job.lane
union all
select job.id, 'dead', job.task, lane.queue, lane.priority, job.args::jsonb, null, job.attempt, job.max_attempts, job.crashes,
       job.created_at, job.created_at, null, null, job.died_at, null, job.token,
       case when job.error is null or job.error = job.reason then job.reason else job.reason || ': ' || job.error end, job.key
from faultline.dead as job
join faultline.lanes as lane on lane.id = job.lane
union all
select entry.job_id, entry.outcome::text, entry.task, lane.queue, lane.priority, entry.args::jsonb, entry.result::jsonb, entry.attempt,
       entry.max_attempts, entry.crashes, entry.created_at, entry.created_at, entry.claimed_at, null, entry.settled_at, worker.name, entry.token,
       entry.error, entry.key
from faultline.ledger as entry
join faultline.lanes as lane on lane.id = entry.lane
left join faultline.workers as worker on worker.id = entry.worker
where entry.slot = 0;
