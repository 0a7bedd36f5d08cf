-- The verdict where the synchronous standby took over: every commit that was answered is there, and every claim.
with
asked    as materialized (select unnest(%(jobs)s::bigint[]) as job_id),
lease    as materialized (select entry.* from asked cross join lateral faultline.history(asked.job_id) as entry),
refusal  as materialized (select noted.* from asked cross join lateral faultline.list_refusals(asked.job_id) as noted),
sight    as materialized (select sightings.* from asked join sightings using (job_id)),
job      as materialized (select found.* from asked cross join lateral faultline.get_job(asked.job_id) as found),
effect   as materialized (select effects.* from asked join effects using (job_id)),
winner   as (select * from lease where outcome = 'succeeded'),
died     as (select min(at) as at from sight where what = 'halted'),
old      as (select * from lease where job_id = %(late)s and outcome = 'expired')
select promise, coalesce(kept, false) as kept, coalesce(evidence, 'no trace of it') as evidence
from (
  select 1 as place, 'the commit that was answered is there, with its effects' as promise,
         (select count(*) = 1 and bool_and(outcome = 'succeeded' and settled_at < died.at) from lease cross join died where job_id = %(lost)s)
           and (select count(*) = 2 and bool_and(effect.token = %(old_token)s) from effect where job_id = %(lost)s) as kept,
         (select format('%%s effect rows under token %%s', count(*), string_agg(distinct token::text, ' and ')) from effect where job_id = %(lost)s)
           as evidence
  union all
  select 2, 'the claim is there: no other worker had the job before its lease ran out',
         (select count(*) = 1 and bool_and(old.token = %(old_token)s and winner.claimed_at >= old.settled_at)
          from old join winner using (job_id)),
         (select string_agg(format('token %%s of %%s expired, then %%s had token %%s', old.token, old.worker, winner.worker, winner.token), '; ')
          from old join winner using (job_id))
  union all
  select 3, 'each job ended once, in success, and its work was committed once',
         (select count(*) = 2 and count(distinct job_id) = 2 from winner)
           and (select count(*) = 4 and bool_and((effect.worker, effect.token) = (winner.worker, winner.token)) from effect join winner using (job_id)),
         (select format('%%s successes, %%s effect rows', (select count(*) from winner), count(*)) from effect)
  union all
  select 4, 'tokens of the new timeline are above all of the old one',
         (select winner.token >= 1::bigint << 40 and winner.token > %(old_token)s from winner where job_id = %(late)s),
         (select format('%%s, then %%s', %(old_token)s, winner.token) from winner where job_id = %(late)s)
  union all
  select 5, 'no worker was refused',
         (select count(*) from refusal) = 0, (select format('%%s refused', count(*)) from refusal)
) as promised
order by place
