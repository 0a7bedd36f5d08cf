-- How long a job waits after a crash: not at all after the first, then 1 s, doubled each time, up to five minutes.
create function faultline.crash_delay(crashes int)
returns interval
language sql
immutable
as $$
  -- The exponent is capped first: 2^200 seconds gave a negative interval on PostgreSQL 15.
  select case when crashes <= 1 then interval '0'
         else least(interval '1 second' * power(2, least(crashes, 20) - 2), interval '5 minutes') end
$$;
