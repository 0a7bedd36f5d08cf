-- The verdict where the standby that had fallen behind took over: what is lost is lost together, and its past cannot write.
with
asked    as materialized (select unnest(%(jobs)s::bigint[]) as job_id),
lease    as materialized (select entry.* from asked cross join lateral faultline.history(asked.job_id) as entry),
refusal  as materialized (select noted.* from asked cross join lateral faultline.list_refusals(asked.job_id) as noted),
sight    as materialized (select sightings.* from asked join sightings using (job_id)),
effect   as materialized (select effects.* from asked join effects using (job_id)),
winner   as (select * from lease where outcome = 'succeeded')
select promise, coalesce(kept, false) as kept, coalesce(evidence, 'no trace of it') as evidence
from (
  select 1 as place, 'what was lost was lost together: the success and its effects' as promise,
         not exists (select from lease where token = %(old_token)s) and not exists (select from effect where token = %(old_token)s) as kept,
         (select format('%%s leases and %%s effect rows of the lost past', count(*),
                        (select count(*) from effect where token = %(old_token)s)) from lease where token = %(old_token)s) as evidence
  union all
  select 2, 'the work was done once in the world that is left',
         (select count(*) = 2 and count(distinct job_id) = 2 from winner)
           and (select count(*) = 4 and bool_and((effect.worker, effect.token) = (winner.worker, winner.token)) from effect join winner using (job_id)),
         (select format('%%s successes, %%s effect rows, written by %%s', (select count(*) from winner), count(*),
                        string_agg(distinct worker, ' and ')) from effect)
  union all
  select 3, 'a commit under a lease of the lost past was refused while another held the job',
         (select bool_or((sight.job_id, sight.who) = (%(late)s, 'A') and sight.at between winner.claimed_at and winner.settled_at)
          from sight join winner using (job_id) where sight.what = 'old lease refused'),
         (select string_agg(format('%%s %%s', who, note), '; ') from sight where what = 'old lease refused')
  union all
  select 4, 'no token was issued twice: those of the new timeline are above all of the old one',
         (select bool_and(token >= 1::bigint << 40 and token > %(old_token)s) from lease),
         (select format('%%s, then %%s', %(old_token)s, string_agg(distinct token::text, ', ')) from lease)
  union all
  select 5, 'the worker that held the job was never refused',
         (select count(*) = 0 from refusal join winner using (job_id, token)),
         (select format('%%s of its writes refused', count(*)) from refusal join winner using (job_id, token))
) as promised
order by place
