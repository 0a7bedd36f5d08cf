-- What became of the jobs, as the tables have it.
with ends as (
  select entry.job_id, count(*) filter (where entry.slot = 0) as successes, count(*) as leases,
         count(*) filter (where entry.outcome = 'expired') as expired
  from faultline.ledger as entry
  where entry.task <> 'warm_up'
  group by entry.job_id
)
select
  (select count(*) from ends where ends.successes > 0) as succeeded,
  (select count(*) from ends where ends.successes > 1) as succeeded_twice,
  (select count(*) from ends where ends.leases > 1) as run_again,
  (select coalesce(sum(ends.expired), 0)::bigint from ends) as leases_expired,
  (select count(*) from faultline.active) + (select count(*) from faultline.later) as unfinished,
  (select count(*) from faultline.dead) as died,
  (select bool_and(queue.keep <> 'nothing') from faultline.queues as queue) as all_kept,
  (select coalesce(sum(refusal.times), 0)::bigint from faultline.refusals as refusal) as writes_refused
