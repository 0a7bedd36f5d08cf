-- TokenGrows: no token is higher than all that this server, and those before it, can have issued.
-- A role that may read the tables may not read a sequence. Then its position is unknown, and nothing is reported.
with tokens as (
  select case when has_sequence_privilege('faultline.tokens', 'select') then coalesce(sequence.last_value, 0) end as last_value
  from pg_sequences as sequence
  where sequence.schemaname = 'faultline' and sequence.sequencename = 'tokens'
),
held as (
  select job.id, job.token, null::faultline.lease_end as outcome
  from faultline.active as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select job.id, job.token, null from faultline.later as job where job.id >= %(low)s and job.id < %(high)s
  union all
  select entry.job_id, entry.token, entry.outcome
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and not (entry.outcome = 'dead' and entry.token >= 2305843009213693952)   -- found and buried by quarantine
)
select held.id as job_id,
       format('%%s has token %%s, which was never issued', coalesce('its lease that ended ' || held.outcome, 'its row'),
              held.token) as told,
       true as sure
from held
where held.token >= (select ((setting.base + setting.timeline) << 40) + tokens.last_value
                     from faultline.settings as setting cross join tokens)
limit %(most)s
