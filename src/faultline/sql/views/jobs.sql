-- Every job, in every state. No view shows the claim: a client that knows it can act on the job.
-- A damaged row is shown too, and `damage` says what is wrong with it. Moments are cut to what clients can hold; a document that is
-- not JSON is null. Parsing a mebibyte takes a third of a second, so `damage` reads documents of up to 2 KiB; get_job reads longer ones
-- of one job. Every branch has exactly the same types, so the planner does not compute columns that a query does not use.
create view faultline.jobs as
select job.id, case when job.claim is null then 'queued'::text else 'running'::text end as state,
       job.task::text as task, lane.queue::text as queue, lane.priority::int as priority,
       faultline.readable(job.args::text) as args, null::jsonb as result,
       job.attempt::int as attempt, job.max_attempts::int as max_attempts, job.crashes::int as crashes,
       greatest(least(job.created_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00') as run_at,
       greatest(least(job.created_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00') as created_at,
       case when job.claimed_at is not null then greatest(least(job.claimed_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00') end as claimed_at,
       case when job.lease_until is not null then greatest(least(job.lease_until, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00') end as lease_until,
       null::timestamptz as finished_at, worker.name as worker, job.token, job.error, job.key::text as key,
       faultline.damage(case when octet_length(job.args::text) <= 2048 then job.args::text end, null, job.task, job.created_at, job.created_at, array[job.claimed_at, job.lease_until]) as damage
from faultline.active as job
join faultline.lanes as lane on lane.id = job.lane
left join faultline.workers as worker on worker.id = job.claimed_by
union all
select job.id, 'queued'::text, job.task::text, lane.queue::text, lane.priority::int, faultline.readable(job.args::text), null::jsonb, job.attempt::int,
       job.max_attempts::int, job.crashes::int,
       greatest(least(job.run_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00'),
       greatest(least(job.created_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00'),
       null::timestamptz, null::timestamptz, null::timestamptz, null::text, job.token, job.error, job.key::text,
       faultline.damage(case when octet_length(job.args::text) <= 2048 then job.args::text end, null, job.task, job.run_at, job.created_at, null)
from faultline.later as job
join faultline.lanes as lane on lane.id = job.lane
union all
select job.id, 'dead'::text, job.task::text, lane.queue::text, lane.priority::int, faultline.readable(job.args::text), null::jsonb, job.attempt::int,
       job.max_attempts::int, job.crashes::int,
       greatest(least(job.created_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00'),
       greatest(least(job.created_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00'),
       null::timestamptz, null::timestamptz, case when job.died_at is not null then greatest(least(job.died_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00') end, null::text, job.token,
       case when job.error is null or job.error = job.reason then job.reason else job.reason || ': ' || job.error end, job.key::text,
       faultline.damage(case when octet_length(job.args::text) <= 2048 then job.args::text end, null, job.task, job.created_at, job.created_at, array[job.died_at])
from faultline.dead as job
join faultline.lanes as lane on lane.id = job.lane
union all
select entry.job_id, entry.outcome::text, entry.task::text, lane.queue::text, lane.priority::int, faultline.readable(entry.args::text),
       faultline.readable(entry.result::text), entry.attempt::int, entry.max_attempts::int, entry.crashes::int,
       greatest(least(entry.created_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00'),
       greatest(least(entry.created_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00'),
       case when entry.claimed_at is not null then greatest(least(entry.claimed_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00') end,
       null::timestamptz, case when entry.settled_at is not null then greatest(least(entry.settled_at, timestamptz '9000-01-01 00:00+00'), timestamptz '1970-01-01 00:00+00') end, worker.name, entry.token,
       entry.error, entry.key::text,
       faultline.damage(case when octet_length(entry.args::text) <= 2048 then entry.args::text end,
                        case when octet_length(entry.result::text) <= 2048 then entry.result::text end, entry.task, entry.created_at, entry.created_at, array[entry.claimed_at, entry.settled_at])
from faultline.ledger as entry
join faultline.lanes as lane on lane.id = entry.lane
left join faultline.workers as worker on worker.id = entry.worker
where entry.slot = 0;
