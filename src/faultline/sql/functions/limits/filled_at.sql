-- When the bucket of a rate is full: between now, and now plus the time that fills it from empty.
create function faultline.filled_at(known faultline.limits, moment timestamptz)
returns timestamptz
language sql
immutable
as $$
  select least(greatest(known.full_at, moment), moment + known.burst / known.rate * interval '1 second')
$$;
