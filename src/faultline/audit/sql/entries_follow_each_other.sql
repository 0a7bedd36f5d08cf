-- LedgerReplays: each lease starts with the counts that the lease before it left.
-- Failed and expired keep the attempt, snoozed and released give it back, and a replay of a dead job starts again. An expired lease is a
-- crash. A failure or a death may have been one; no other end is.
with damaged as (   -- quarantine tells of damage by hand; before and after it nothing adds up
  select entry.job_id
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.token >= 2305843009213693952
),
followed as (
  select entry.job_id, entry.token, entry.outcome, entry.attempt, entry.crashes, entry.claim is not null as leased,
         lag(entry.token) over in_order as token_before,
         coalesce(lag(case entry.outcome when 'dead' then 0 when 'snoozed' then entry.attempt - 1
                      when 'released' then entry.attempt - 1 else entry.attempt end) over in_order, 0) as attempt_before,
         coalesce(lag(case entry.outcome when 'dead' then 0 else entry.crashes end) over in_order, 0) as crashes_before
  from faultline.ledger as entry
  where entry.job_id >= %(low)s and entry.job_id < %(high)s
    and entry.job_id not in (select damaged.job_id from damaged)
  window in_order as (partition by entry.job_id order by entry.token, entry.slot = 0)
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
