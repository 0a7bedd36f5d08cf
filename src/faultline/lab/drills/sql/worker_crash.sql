-- The verdict on a worker's crash: each promise kept or broken, by ledger, refusals and effect rows alone.
with
lease   as materialized (select * from faultline.history(%(job)s)),
refusal as materialized (select * from faultline.list_refusals(%(job)s)),
effect  as materialized (select * from effects where job_id = %(job)s),
sight   as materialized (select * from sightings where job_id = %(job)s),
job     as materialized (select * from faultline.get_job(%(job)s)),
winner  as (select * from lease where outcome = 'succeeded'),
lost    as (select * from lease where outcome = 'expired'),
crashed as (select lost.* from lost join sight on (sight.who, sight.what) = (lost.worker, 'killed'))
select promise, coalesce(kept, false) as kept, coalesce(evidence, 'no trace of it') as evidence
from (
  select 1 as place, 'the job ended once, in success' as promise,
         (select count(*) from winner) = 1 and (select array_agg(job.state) from job) = array['succeeded'] as kept,
         (select format('%%s success in the ledger, by %%s under token %%s', count(*), min(worker), min(token)) from winner) as evidence
  union all
  select 2, 'its work was committed once',
         (select count(*) = 2 and count(distinct effect.wrote) = 2
                 and bool_and((effect.worker, effect.token) = (winner.worker, winner.token))
          from effect cross join winner),
         (select format('%%s effect rows, written by %%s; what the killed one had written is gone', count(*),
                        string_agg(distinct worker, ' and '))
          from effect)
  union all
  select 3, 'the crash went through the ordinary retry path, and was counted',
         (select count(*) from crashed) = 1
           and (select (job.crashes, job.attempt) = (lost.times, lost.times + 1)
                from job cross join (select count(*) as times from lost) as lost),
         (select format('attempt %%s succeeded after %%s crash', job.attempt, job.crashes) from job)
  union all
  select 4, 'no worker took the job before its lease had run out',
         (select crashed.settled_at >= ended.at and winner.claimed_at >= crashed.settled_at
          from winner cross join crashed join sight as ended on ended.what = 'lease_ends'),
         (select format('taken over %%s ms after the lease of %%s had run out',
                        round(extract(epoch from winner.claimed_at - ended.at) * 1000), crashed.worker)
          from winner cross join crashed join sight as ended on ended.what = 'lease_ends')
  union all
  select 5, 'the pacemaker went with its worker',
         (select gone.at >= killed.at
          from sight as killed join sight as gone on (killed.what, gone.what) = ('killed', 'gone')),
         (select format('gone %%s ms after the kill', round(extract(epoch from gone.at - killed.at) * 1000))
          from sight as killed join sight as gone on (killed.what, gone.what) = ('killed', 'gone'))
  union all
  select 6, 'no worker was refused',
         (select count(*) from refusal) = 0,
         (select format('%%s refused', count(*)) from refusal)
) as promised
order by place
