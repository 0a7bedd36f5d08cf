-- The verdict on a crash between effect and commit: each promise kept or broken, by ledger, refusals and effect rows alone.
with
asked    as materialized (select unnest(%(jobs)s::bigint[]) as job_id),
lease    as materialized (select entry.* from asked cross join lateral faultline.history(asked.job_id) as entry),
refusal  as materialized (select noted.* from asked cross join lateral faultline.list_refusals(asked.job_id) as noted),
sight    as materialized (select sightings.* from asked join sightings using (job_id)),
job      as materialized (select found.* from asked cross join lateral faultline.get_job(asked.job_id) as found),
effect   as materialized (select effects.* from asked join effects using (job_id)),
winner   as (select * from lease where outcome = 'succeeded'),
spared   as (select job_id from sight where what = 'committed before the kill'),
lost     as (select * from lease where outcome = 'expired'),
killed   as (select job_id, who, at from sight where what = 'killed'),
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
  select 1 as place, 'each job ended once, in success' as promise,
         (select count(*) = (select count(*) from asked) and count(distinct job_id) = count(*) from winner)
           and (select bool_and(job.state = 'succeeded') from job) as kept,
         (select format('%%s jobs, %%s successes in the ledger', (select count(*) from asked), count(*)) from winner) as evidence
  union all
  select 2, 'the work of each was committed once, whole, by the one who ended it',
         (select bool_and(times = 2 and kinds = 2 and by_winner) from written),
         (select string_agg(format('job %%s: %%s rows', job_id, times), ', ' order by job_id) from written)
  union all
  select 3, 'what was not committed at the kill is gone, and was done again by another',
         (select count(*) = (select count(*) from asked) - 1 and bool_and(winner.worker <> lost.worker)
          from lost join winner using (job_id))
           and not exists (
             select from effect join killed on (killed.job_id, killed.who) = (effect.job_id, effect.worker)
             where effect.job_id not in (select job_id from spared)),
         (select string_agg(format('job %%s by %%s, then by %%s', lost.job_id, lost.worker, winner.worker), ', ' order by lost.job_id)
          from lost join winner using (job_id))
  union all
  select 4, 'what was committed at the kill stands, and was not done again',
         (select count(*) = 1 and bool_and(winner.worker = killed.who and winner.settled_at < killed.at)
          from winner join spared using (job_id) join killed using (job_id))
           and (select count(*) = 1 from lease join spared using (job_id)),
         (select string_agg(format('job %%s: one lease, %%s under token %%s', lease.job_id, lease.outcome, lease.token), '; ')
          from lease join spared using (job_id))
  union all
  select 5, 'no worker took a job before its lease had run out',
         (select bool_and(lost.settled_at >= ended.at and winner.claimed_at >= lost.settled_at)
          from lost join winner using (job_id) join sight as ended on (ended.job_id, ended.what) = (lost.job_id, 'lease_ends')),
         (select string_agg(format('job %%s: %%s ms after', lost.job_id, round(extract(epoch from winner.claimed_at - ended.at) * 1000)), ', '
                            order by lost.job_id)
          from lost join winner using (job_id) join sight as ended on (ended.job_id, ended.what) = (lost.job_id, 'lease_ends'))
  union all
  select 6, 'each crash was counted, and no worker was refused',
         (select bool_and(job.crashes = (select count(*) from lost where lost.job_id = job.id)) from job)
           and (select count(*) from refusal) = 0,
         (select format('%%s crashes, %%s refused', sum(job.crashes), (select count(*) from refusal)) from job)
) as promised
order by place
