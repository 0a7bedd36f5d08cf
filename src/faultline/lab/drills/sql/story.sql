-- One job's story: which worker held which token when, what was done to each process, what was refused.
select at, who, what, token, note
from (
  select entry.claimed_at as at, coalesce(entry.worker, 'a worker') as who, 'claimed' as what, entry.token, null as note
  from faultline.history(%(job)s) as entry
  union all
  select entry.settled_at, coalesce(entry.worker, 'a worker'), entry.outcome, entry.token, entry.error
  from faultline.history(%(job)s) as entry
  union all
  select refusal.first_at, coalesce(refusal.worker, 'a worker'), 'refused', refusal.token,
         concat_ws('/', refusal.reason, refusal.current_token)
  from faultline.list_refusals(%(job)s) as refusal
  union all
  select sight.at, sight.who, sight.what, null, sight.note
  from sightings as sight
  where sight.job_id = %(job)s
) as story
order by at, what
