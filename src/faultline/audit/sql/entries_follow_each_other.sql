-- LedgerReplays: each lease takes up the counts where the one before it left them.
-- A failure may be a crash: its process died. Failed and expired keep the attempt, snoozed and released give it back, a replay of the dead begins anew.
with entries as (
  select entry.job_id, entry.slot, entry.token, entry.outcome, entry.attempt, entry.crashes, entry.claim is not null as leased,
         bool_or(entry.token >= 2305843009213693952) over (partition by entry.job_id) as damaged
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
),
followed as (
  select entries.*,
         lag(entries.token) over in_order as token_before,
         coalesce(lag(case entries.outcome when 'dead' then 0 when 'snoozed' then entries.attempt - 1
                      when 'released' then entries.attempt - 1 else entries.attempt end) over in_order, 0) as attempt_before,
         coalesce(lag(case entries.outcome when 'dead' then 0 else entries.crashes end) over in_order, 0) as crashes_before
  from entries
  where not entries.damaged   -- quarantine tells of damage by hand; before and after it nothing adds up
  window in_order as (partition by entries.job_id order by entries.token, entries.slot = 0)
)
select followed.job_id,
       format('token %%s %%s in attempt %%s after %%s crashes; %%s left attempt %%s, %%s crashes', followed.token, followed.outcome,
              followed.attempt, followed.crashes, coalesce('token ' || followed.token_before, 'its enqueue'),
              followed.attempt_before, followed.crashes_before) as told,
       true as sure
from followed
where followed.attempt <> followed.attempt_before + followed.leased::int
   or followed.crashes - followed.crashes_before not between (followed.outcome = 'expired')::int
                                                         and (followed.outcome in ('expired', 'failed', 'dead'))::int
limit %(most)s
