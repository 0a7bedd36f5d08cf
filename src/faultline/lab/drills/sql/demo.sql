-- The verdict on the demo: each promise kept or broken, by ledger, refusals and effect rows alone.
with
lease    as materialized (select * from faultline.history(%(job)s)),
refusal  as materialized (select * from faultline.list_refusals(%(job)s)),
effect   as materialized (select * from effects where job_id = %(job)s),
sight    as materialized (select * from sightings where job_id = %(job)s),
winner   as (select * from lease where outcome = 'succeeded'),
zombie   as (
  select lease.* from lease join sight on (sight.who, sight.what) = (lease.worker, 'frozen') where lease.outcome = 'expired'
),
ordinary as (
  select done.job_id, count(*) filter (where done.outcome = 'succeeded') as successes, max(done.attempt) as attempts,
         (select count(*) from effects as receipt where receipt.job_id = done.job_id) as receipts
  from faultline.entries as done
  where done.task = 'send_receipt'
  group by done.job_id
)
select promise, coalesce(kept, false) as kept, coalesce(evidence, 'no trace of it') as evidence
from (
  select 1 as place, 'every ordinary job was done, and its work committed once' as promise,
         (select count(*) = %(ordinary)s and bool_and(successes = 1 and receipts = 1) from ordinary) as kept,
         (select format('%%s jobs, %%s successes, %%s receipts, %%s needed a second attempt', count(*), sum(successes),
                        sum(receipts), count(*) filter (where attempts > 1))
          from ordinary) as evidence
  union all
  select 2, 'the money was moved once, by the worker that held the job',
         (select count(*) = 2 and count(distinct effect.wrote) = 2
                 and bool_and((effect.worker, effect.token) = (winner.worker, winner.token))
          from effect cross join winner),
         (select format('%%s effect rows, written by %%s under token %%s', count(*), string_agg(distinct worker, ' and '),
                        string_agg(distinct token::text, ' and '))
          from effect)
  union all
  select 3, 'the job ended once, in success',
         (select count(*) from winner) = 1 and (select array_agg(job.state) from faultline.get_job(%(job)s) as job) = array['succeeded'],
         (select format('%%s success in the ledger, by %%s under token %%s', count(*), min(worker), min(token)) from winner)
  union all
  select 4, 'the later claim has the higher token',
         (select winner.token > zombie.token from winner cross join zombie),
         (select format('%%s had token %%s, then %%s had token %%s', zombie.worker, zombie.token, winner.worker, winner.token)
          from winner cross join zombie)
  union all
  select 5, 'the worker that woke late was refused while the other still worked',
         (select bool_or((refusal.token, refusal.worker_id, refusal.reason, refusal.current_token)
                         = (zombie.token, zombie.worker_id, 'token_mismatch', winner.token)
                         and refusal.first_at between winner.claimed_at and winner.settled_at)
          from refusal cross join winner cross join zombie),
         (select format('%%s with token %%s: %%s, the current token is %%s', worker, token, reason, current_token)
          from refusal join zombie using (token, worker, worker_id))
  union all
  select 6, 'the right token with a wrong claim id opens nothing',
         (select count(*) = 1 from refusal join winner using (token) where refusal.worker = 'thief'),
         (select format('the thief with token %%s: %%s', token, reason)
          from refusal join winner using (token) where refusal.worker = 'thief')
  union all
  select 7, 'the right claim id with an old token opens nothing',
         (select count(*) = 1 from refusal join zombie using (token) where refusal.worker = 'thief'),
         (select format('the thief with token %%s: %%s', token, reason)
          from refusal join zombie using (token) where refusal.worker = 'thief')
  union all
  select 8, 'the worker that held the job was never refused',
         (select count(*) = 0 from refusal join winner using (token, worker_id)) and (select count(*) from winner) = 1,
         (select format('%%s refused in all: %%s', count(*), string_agg(worker, ', ' order by first_at)) from refusal)
) as promised
order by place
