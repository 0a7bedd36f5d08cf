-- NoZombie: an effect was written under the lease that succeeded: with its token, and its claim or attempt where the table has them.
select effect_row.job_id,
       format('token %%s left an effect, and token %%s succeeded%%s', effect_row.token, success.token,
              case when effect_row.token = success.token then ', under another claim' end) as told,
       true as sure
from {effects} as effect_row
join faultline.ledger as success on success.job_id = effect_row.job_id and success.outcome = 'succeeded'
where effect_row.token <> success.token
   or (to_jsonb(effect_row) ->> 'claim')::uuid <> success.claim
   or (to_jsonb(effect_row) ->> 'attempt')::bigint <> success.attempt
limit %(most)s
