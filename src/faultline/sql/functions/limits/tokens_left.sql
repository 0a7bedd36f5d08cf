-- How many starts the bucket of a rate allows at this moment; null without a rate.
-- `full_at` later than the moment allows is clamped: the clock was set back, or the rate was changed.
create function faultline.tokens_left(known faultline.limits, moment timestamptz)
returns int
language sql
immutable
as $$
  select case when known.rate is not null then greatest(0, floor(
    known.burst - extract(epoch from faultline.filled_at(known, moment) - moment)::float8 * known.rate + 1e-6))::int end
$$;
