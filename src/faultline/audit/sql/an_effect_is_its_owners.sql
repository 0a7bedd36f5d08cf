-- NoZombie: an effect was written under the very lease that succeeded: its token, and its claim or attempt where told.
select effect.job_id,
       format('token %%s left an effect, and token %%s succeeded%%s', effect.token, success.token,
              case when effect.token = success.token then ', under another claim' end) as told,
       true as sure
from {effects} as effect
join faultline.ledger as success on success.job_id = effect.job_id and success.outcome = 'succeeded'
where effect.token <> success.token
   or (to_jsonb(effect) ->> 'claim')::uuid <> success.claim
   or (to_jsonb(effect) ->> 'attempt')::bigint <> success.attempt
limit %(most)s
