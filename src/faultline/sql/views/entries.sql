-- The ledger for people: every lease and how it ended, without its claim.
create view faultline.entries as
select entry.job_id, entry.token, entry.outcome::text as outcome, entry.attempt::int as attempt, entry.worker as worker_id,
       worker.name as worker, entry.claimed_at, entry.settled_at, entry.error,
       entry.task::text as task, lane.queue::text as queue
from faultline.ledger as entry
join faultline.lanes as lane on lane.id = entry.lane
left join faultline.workers as worker on worker.id = entry.worker;
