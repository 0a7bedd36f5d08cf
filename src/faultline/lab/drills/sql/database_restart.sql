-- The verdict on a restart of the server under running jobs: each promise kept or broken, by ledger, refusals and effect rows.
with
asked    as materialized (select unnest(%(jobs)s::bigint[]) as job_id),
lease    as materialized (select entry.* from asked cross join lateral faultline.history(asked.job_id) as entry),
refusal  as materialized (select noted.* from asked cross join lateral faultline.list_refusals(asked.job_id) as noted),
sight    as materialized (select sightings.* from asked join sightings using (job_id)),
job      as materialized (select found.* from asked cross join lateral faultline.get_job(asked.job_id) as found),
effect   as materialized (select effects.* from asked join effects using (job_id)),
winner   as (select * from lease where outcome = 'succeeded'),
halted   as (select min(at) as at from sight where what = 'halted'),
written  as (
  select asked.job_id, count(effect.wrote) as times, count(distinct effect.wrote) as kinds,
         coalesce(bool_and((effect.worker, effect.token) = (winner.worker, winner.token)), false) as by_winner
  from asked
  left join effect using (job_id)
  left join winner using (job_id)
  group by asked.job_id
)
select promise, coalesce(kept, false) as kept, coalesce(evidence, 'no trace of it') as evidence
from (
  select 1 as place, 'no acknowledged job was lost: each ended once, in success' as promise,
         (select count(*) = (select count(*) from asked) and count(distinct job_id) = count(*) from winner)
           and (select bool_and(job.state = 'succeeded') from job) as kept,
         (select format('%%s jobs, %%s successes in the ledger', (select count(*) from asked), count(*)) from winner) as evidence
  union all
  select 2, 'the work of each was committed once, whole',
         (select bool_and(times = 2 and kinds = 2 and by_winner) from written),
         (select string_agg(format('job %%s: %%s rows', job_id, times), ', ' order by job_id) from written)
  union all
  select 3, 'the commit that stood and was not answered is found, and not done again',
         (select count(*) = 1 and bool_and(outcome = 'succeeded' and settled_at < halted.at)
          from lease cross join halted where job_id = %(unheard)s),
         (select string_agg(format('token %%s: %%s', token, outcome), ', ') from lease where job_id = %(unheard)s)
  union all
  select 4, 'the commit that was not done is known not to be, and done again',
         (select array_agg(outcome order by token) = array['snoozed', 'succeeded'] from lease where job_id = %(inside)s),
         (select string_agg(format('token %%s: %%s', token, outcome), ', ' order by token) from lease where job_id = %(inside)s)
  union all
  select 5, 'half-written work is gone, and done again from the start',
         (select array_agg(outcome order by token) = array['snoozed', 'succeeded'] from lease where job_id = %(open_)s),
         (select string_agg(format('token %%s: %%s', token, outcome), ', ' order by token) from lease where job_id = %(open_)s)
  union all
  select 6, 'the enqueue that was not answered is one job, however often it is asked for',
         (select count(*) = 1 from faultline.list_jobs(most => 1000) as made join job using (key) where made.key is not null),
         (select string_agg(format('job %%s', job.id), ', ') from job where job.key is not null)
  union all
  select 7, 'the outage cost no attempt, no lease and no worker, and no worker was refused',
         (select bool_and(job.attempt = 1 and job.crashes = 0) from job)
           and (select count(distinct worker_id) = 1 and count(*) filter (where outcome = 'expired') = 0 from lease)
           and (select count(*) from refusal) = 0,
         (select format('%%s attempt, %%s crashes, %%s refused', max(job.attempt), sum(job.crashes), (select count(*) from refusal)) from job)
  union all
  select 8, 'the server was really stopped and started, and recovered from its log',
         (select pg_postmaster_start_time() > halted.at from halted),
         (select format('started %%s ms after it was stopped', round(extract(epoch from pg_postmaster_start_time() - halted.at) * 1000))
          from halted)
) as promised
order by place
