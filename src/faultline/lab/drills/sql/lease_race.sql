-- The verdict on a lease race: each promise kept or broken, by ledger, refusals and effect rows alone.
with
lease   as materialized (select * from faultline.history(%(job)s)),
refusal as materialized (select * from faultline.list_refusals(%(job)s)),
effect  as materialized (select * from effects where job_id = %(job)s),
sight   as materialized (select * from sightings where job_id = %(job)s),
state   as materialized (select job.state from faultline.get_job(%(job)s) as job),
winner  as (select * from lease where outcome = 'succeeded'),
zombie  as (
  select lease.* from lease join sight on (sight.who, sight.what) = (lease.worker, 'frozen') where lease.outcome = 'expired'
)
select promise, coalesce(kept, false) as kept, coalesce(evidence, 'no trace of it') as evidence
from (
  select 1 as place, 'the job ended once, in success' as promise,
         (select count(*) from winner) = 1 and (select array_agg(state.state) from state) = array['succeeded'] as kept,
         (select format('%%s success in the ledger, by %%s under token %%s', count(*), min(worker), min(token)) from winner) as evidence
  union all
  select 2, 'its work was committed once',
         (select count(*) = 2 and count(distinct effect.wrote) = 2
                 and bool_and((effect.worker, effect.token) = (winner.worker, winner.token))
          from effect cross join winner),
         (select format('%%s effect rows, written by %%s under token %%s', count(*), string_agg(distinct worker, ' and '),
                        string_agg(distinct token::text, ' and '))
          from effect)
  union all
  select 3, 'the later claim has the higher token',
         (select winner.token > zombie.token from winner cross join zombie),
         (select format('%%s had token %%s, then %%s had token %%s', zombie.worker, zombie.token, winner.worker, winner.token)
          from winner cross join zombie)
  union all
  select 4, 'the late write was refused, and it is on record',
         (select bool_or((refusal.token, refusal.worker_id, refusal.reason, refusal.current_token)
                         = (zombie.token, zombie.worker_id, 'token_mismatch', winner.token))
          from refusal cross join winner cross join zombie),
         (select string_agg(format('%%s with token %%s: %%s, the current token is %%s', worker, token, reason, current_token), '; ')
          from refusal)
  union all
  select 5, 'no worker was refused that had not lost the job before',
         (select count(*) = 0 from refusal join winner on refusal.token >= winner.token) and (select count(*) from winner) = 1,
         (select format('%%s refused: %%s', count(*), string_agg(worker, ', ' order by first_at)) from refusal)
  union all
  select 6, 'no worker took the job before its lease had run out',
         (select zombie.settled_at >= ended.at and winner.claimed_at >= zombie.settled_at
          from winner cross join zombie join sight as ended on ended.what = 'lease_ends'),
         (select format('taken over %%s ms after the lease of %%s had run out',
                        round(extract(epoch from winner.claimed_at - ended.at) * 1000), zombie.worker)
          from winner cross join zombie join sight as ended on ended.what = 'lease_ends')
  union all
  select 7, 'the late one was frozen in its commit, and woke after the other had committed',
         (select frozen.at < zombie.settled_at and woken.at > winner.settled_at
          from winner cross join zombie
          join sight as frozen on (frozen.who, frozen.what) = (zombie.worker, 'frozen')
          join sight as woken on (woken.who, woken.what) = (zombie.worker, 'continued')),
         (select format('frozen for %%s ms', round(extract(epoch from woken.at - frozen.at) * 1000))
          from sight as frozen join sight as woken on (frozen.what, woken.what) = ('frozen', 'continued'))
) as promised
order by place
