-- OneEffect: where every success of a task leaves an effect, no effect is missing.
select success.job_id, format('token %%s succeeded, and left no effect', success.token) as told, true as sure
from faultline.ledger as success
where success.outcome = 'succeeded'
  and success.task::text = any (%(tasks)s::text[])
  and not exists (select from {effects} as effect_row where effect_row.job_id = success.job_id)
limit %(most)s
