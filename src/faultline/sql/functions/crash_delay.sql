-- How long a job waits after a crash: nothing the first time, then 1 s and doubling, never over five minutes.
create function faultline.crash_delay(crashes int)
returns interval
language sql
immutable
as $$
  -- The exponent is capped before it is raised: 2^200 seconds came out negative on PostgreSQL 15.
  select case when crashes <= 1 then interval '0'
         else least(interval '1 second' * power(2, least(crashes, 20) - 2), interval '5 minutes') end
$$;
