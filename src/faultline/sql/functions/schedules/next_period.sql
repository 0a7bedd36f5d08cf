-- The first multiple of a period after a moment, counted from `starts_at`. Periods are stored in seconds, so no time zone plays a part.
create function faultline.next_period(starts_at timestamptz, every interval, after timestamptz)
returns timestamptz
language sql
immutable
as $$
  select starts_at + every * (floor(extract(epoch from after - starts_at) / extract(epoch from every)) + 1)::double precision
$$;
