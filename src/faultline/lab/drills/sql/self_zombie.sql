-- The verdict on a worker that met itself: each promise kept or broken, by ledger, refusals and effect rows alone.
with
lease   as materialized (select * from faultline.history(%(job)s)),
refusal as materialized (select * from faultline.list_refusals(%(job)s)),
effect  as materialized (select * from effects where job_id = %(job)s),
sight   as materialized (select * from sightings where job_id = %(job)s),
state   as materialized (select job.state from faultline.get_job(%(job)s) as job),
-- Only where the older attempt had ended, and its result was late: then the newer one need not wait for it.
returned as (select * from sight where what = 'returned'),
winner  as (select * from lease where outcome = 'succeeded'),
older   as (select * from lease where outcome = 'expired'),
again   as (select lease.* from lease cross join older where lease.token > older.token order by lease.token limit 1)
select promise, coalesce(kept, false) as kept, coalesce(evidence, 'no trace of it') as evidence
from (
  select 1 as place, 'the job ended once, in success' as promise,
         (select count(*) from winner) = 1 and (select array_agg(state.state) from state) = array['succeeded'] as kept,
         (select format('%%s success in the ledger, under token %%s', count(*), min(token)) from winner) as evidence
  union all
  select 2, 'its work was committed once, by a newer attempt than the late one',
         (select count(*) = 2 and count(distinct effect.wrote) = 2 and bool_and(effect.token = winner.token and winner.token > older.token)
          from effect cross join winner cross join older),
         (select format('%%s effect rows under token %%s', count(*), string_agg(distinct token::text, ' and ')) from effect)
  union all
  select 3, 'it was one worker all along, and each of its claims had a higher token',
         (select count(distinct worker_id) = 1 and count(distinct token) = count(*)
                 and count(*) >= case when exists (select from returned) then 2 else 3 end
          from lease),
         (select format('%%s held tokens %%s', min(worker), string_agg(token::text, ', ' order by token)) from lease)
  union all
  select 4, 'the late commit met the fence while its own worker held the job, and was refused',
         (select bool_or(met.at >= again.claimed_at and late.at <= again.settled_at)
          from again join sight as met on met.what = 'meets itself' join sight as late on late.what = 'late commit refused'),
         (select format('refused %%s ms after the worker had claimed its own job under token %%s',
                        round(extract(epoch from late.at - again.claimed_at) * 1000), again.token)
          from again join sight as late on late.what = 'late commit refused')
  union all
  select 5, 'the refusal is on record, with both tokens',
         (select bool_or((refusal.token, refusal.worker_id, refusal.reason) = (older.token, older.worker_id, 'token_mismatch')
                         and refusal.current_token >= again.token)
          from refusal cross join older cross join again),
         (select string_agg(format('token %%s: %%s, the current token is %%s', token, reason, current_token), '; ') from refusal)
  union all
  select 6, 'two attempts of one job never ran in this worker at once',
         (select again.outcome = 'snoozed' from again) and not exists (select from effect join again using (token))
           or (select returned.at < again.claimed_at from returned cross join again),
         (select format('token %%s: %%s, %%s', again.token, again.outcome,
                        coalesce(again.error, 'claimed after the older attempt had returned'))
          from again)
  union all
  select 7, 'no worker took the job before its lease had run out',
         (select older.settled_at >= ended.at and again.claimed_at >= older.settled_at
          from older cross join again join sight as ended on ended.what = 'lease_ends'),
         (select format('taken back %%s ms after the lease had run out', round(extract(epoch from older.settled_at - ended.at) * 1000))
          from older join sight as ended on ended.what = 'lease_ends')
) as promised
order by place
