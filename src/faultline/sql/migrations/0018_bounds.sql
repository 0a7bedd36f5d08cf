-- A retry policy travels with each claim of its job, beside the bytes that a claim is bounded to.
create domain faultline.retry_text as faultline.document_text
  constraint a_retry_policy_has_at_most_8192_bytes check (octet_length(value) <= 8192);

-- Bounds of each part of an interval. PostgreSQL compares intervals with months of 30 days and days of 24 hours, but adds real ones, so
-- '3600000 mons -107999999 days' compares as one day, and added to a moment it ends after the year 294276: the row of one producer made
-- every claim of its queue, and every round of the reaper, fail.
-- An interval with months has no negative part: '1 mon -30 days 1 hour' compares as one hour, and is negative in February.

alter domain faultline.wait drop constraint a_delay_is_from_0_to_10_years;
alter domain faultline.wait add constraint a_delay_is_from_0_to_10_years
  check (value >= interval '0' and value <= interval '10 years'
         and (date_part('year', value) = 0 and date_part('month', value) = 0
              or date_part('year', value) <= 10 and least(date_part('year', value), date_part('month', value), date_part('day', value),
                                                     date_part('hour', value), date_part('minute', value), date_part('second', value)) >= 0)
         and date_part('day', value) between -3660 and 3660);

alter domain faultline.lease_time drop constraint a_lease_lasts_from_half_a_second_to_one_day;
alter domain faultline.lease_time add constraint a_lease_lasts_from_half_a_second_to_one_day
  check (value >= interval '500 milliseconds' and value <= interval '1 day'
         and date_part('year', value) = 0 and date_part('month', value) = 0 and abs(date_part('day', value)) <= 1);

alter domain faultline.run_time drop constraint a_timeout_is_from_100_milliseconds_to_30_days;
alter domain faultline.run_time add constraint a_timeout_is_from_100_milliseconds_to_30_days
  check (value >= interval '100 milliseconds' and value <= interval '30 days'
         and date_part('year', value) = 0 and date_part('month', value) = 0 and abs(date_part('day', value)) <= 30);

alter table faultline.keys
  drop constraint a_key_is_kept_for_0_to_10_years,
  add constraint a_key_is_kept_for_0_to_10_years
  check (keep_for >= interval '0' and keep_for <= interval '10 years'
         and (date_part('year', keep_for) = 0 and date_part('month', keep_for) = 0
              or date_part('year', keep_for) <= 10 and least(date_part('year', keep_for), date_part('month', keep_for), date_part('day', keep_for),
                                                     date_part('hour', keep_for), date_part('minute', keep_for), date_part('second', keep_for)) >= 0)
         and date_part('day', keep_for) between -3660 and 3660);

-- A retention that is negative when it is subtracted would delete everything, the act of setting it included.
alter table faultline.settings
  add constraint the_ledger_is_kept_for_1000_years_at_most
  check (ledger_retention <= interval '1000 years'
         and (date_part('year', ledger_retention) = 0 and date_part('month', ledger_retention) = 0
              or date_part('year', ledger_retention) <= 1000 and least(date_part('year', ledger_retention), date_part('month', ledger_retention), date_part('day', ledger_retention),
                                                     date_part('hour', ledger_retention), date_part('minute', ledger_retention), date_part('second', ledger_retention)) >= 0)
         and date_part('day', ledger_retention) between -366000 and 366000),
  add constraint the_dead_are_kept_for_1000_years_at_most
  check (dead_retention <= interval '1000 years'
         and (date_part('year', dead_retention) = 0 and date_part('month', dead_retention) = 0
              or date_part('year', dead_retention) <= 1000 and least(date_part('year', dead_retention), date_part('month', dead_retention), date_part('day', dead_retention),
                                                     date_part('hour', dead_retention), date_part('minute', dead_retention), date_part('second', dead_retention)) >= 0)
         and date_part('day', dead_retention) between -366000 and 366000),
  add constraint acts_are_kept_for_1000_years_at_most
  check (acts_retention <= interval '1000 years'
         and (date_part('year', acts_retention) = 0 and date_part('month', acts_retention) = 0
              or date_part('year', acts_retention) <= 1000 and least(date_part('year', acts_retention), date_part('month', acts_retention), date_part('day', acts_retention),
                                                     date_part('hour', acts_retention), date_part('minute', acts_retention), date_part('second', acts_retention)) >= 0)
         and date_part('day', acts_retention) between -366000 and 366000);
