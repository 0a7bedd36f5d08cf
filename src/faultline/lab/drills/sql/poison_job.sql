-- The verdict on a poison job: each promise kept or broken, by ledger, refusals and effect rows alone.
with
poison   as materialized (select * from faultline.get_job(%(job)s)),
lease    as materialized (select * from faultline.history(%(job)s)),
innocent as materialized (
  select job.* from unnest(%(jobs)s::bigint[]) as asked (id) cross join lateral faultline.get_job(asked.id) as job
  where asked.id <> %(job)s),
its_lease as materialized (
  select entry.* from innocent cross join lateral faultline.history(innocent.id) as entry),
effect   as materialized (select * from effects where job_id = any (%(jobs)s)),
sight    as materialized (select * from sightings where job_id = %(job)s)
select promise, coalesce(kept, false) as kept, coalesce(evidence, 'no trace of it') as evidence
from (
  select 1 as place, 'no innocent was buried' as promise,
         (select count(*) = cardinality(%(jobs)s::bigint[]) - 1 and bool_and(innocent.state = 'succeeded') from innocent) as kept,
         (select format('%%s of %%s that ran beside it succeeded', count(*) filter (where innocent.state = 'succeeded'), count(*))
          from innocent) as evidence
  union all
  select 2, 'the innocent crashed once, with the worker, and were done at the next attempt',
         (select bool_and((innocent.crashes, innocent.attempt) = (1, 2)) from innocent)
           and (select count(*) filter (where outcome = 'expired') = count(*) filter (where outcome = 'succeeded') from its_lease),
         (select format('at most %%s crash, at most %%s attempts', max(innocent.crashes), max(innocent.attempt)) from innocent)
  union all
  select 3, 'their work was committed once',
         (select bool_and(written.rows = 2 and written.kinds = 2)
          from innocent
          join lateral (
            select count(*) as rows, count(distinct effect.wrote) as kinds from effect where effect.job_id = innocent.id
          ) as written on true)
           and not exists (select from effect where effect.job_id = %(job)s),
         (select format('%%s effect rows of %%s jobs, none of the poison', count(*), count(distinct effect.job_id)) from effect)
  union all
  select 4, 'the poison ended among the dead, and not in a loop',
         (select poison.state = 'dead' from poison)
           -- A lease that was given back is no attempt: a busy machine did not let its handler begin, or its heartbeats arrive.
           and (select count(*) filter (where lease.outcome = 'dead') = 1
                       and count(*) filter (where lease.outcome <> 'released') <= 5 from lease),
         (select format('dead after %%s leases: %%s', count(*), string_agg(lease.outcome, ', ' order by lease.token)) from lease)
  union all
  select 5, 'only what it did alone was held against it',
         (select poison.error like 'out of crashes: crashed alone 3 times%%' from poison),
         (select split_part(poison.error, ': HandlerDied', 1) from poison)
  union all
  select 6, 'how it died is kept: in the ledger and in the reason',
         (select bool_and(lease.error like '%%SIGSEGV%%') from lease where lease.outcome in ('failed', 'dead'))
           and (select poison.error like '%%SIGSEGV%%' from poison),
         (select min(split_part(lease.error, E'\n', 1)) from lease where lease.outcome = 'dead')
  union all
  select 7, 'the worker that ran it alone outlived it',
         (select count(distinct lease.worker) = 1 from lease where lease.outcome in ('failed', 'dead'))
           and exists (select from sight where sight.what = 'outlived it'),
         (select format('%%s ran it %%s times, each time in a process of its own', min(lease.worker), count(*))
          from lease where lease.outcome in ('failed', 'dead'))
) as promised
order by place
