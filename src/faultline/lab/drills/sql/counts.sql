-- How often each thing happened to these jobs: leases by how they ended, refusals, effect rows, and what the drill did.
with asked as materialized (select unnest(%(jobs)s::bigint[]) as job_id)
select what, sum(times)::bigint
from (
  select 1 as place, 'granted' as what, count(*) as times from asked cross join lateral faultline.history(asked.job_id)
  union all
  select 2, entry.outcome, count(*)
  from asked cross join lateral faultline.history(asked.job_id) as entry group by entry.outcome
  union all
  select 3, 'refused', coalesce(sum(refusal.times), 0)
  from asked cross join lateral faultline.list_refusals(asked.job_id) as refusal
  union all
  select 4, 'effect rows', count(*) from asked join effects using (job_id)
  union all
  select 5, sight.what, count(*)
  from asked join sightings as sight using (job_id)
  where sight.what not in ('lease_ends', 'at_work', 'gone') group by sight.what
  union all
  select 6, 'answered: ' || submission.answer, sum(submission.times)
  from asked join submissions as submission using (job_id) group by submission.answer
) as counted
where times > 0
group by place, what
order by place, what
