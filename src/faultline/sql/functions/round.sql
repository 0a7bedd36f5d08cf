-- Whose round is it? `mine` for the one caller that moves `round_at` on by a tick; the others have nothing to do.
-- After an outage every lease looks expired though every worker is well: then nobody reaps for one default lease, and no lease
-- is taken that had not its own time since (see reap). A clock that was set is noticed here, and what it made wrong is mended.
create function faultline.round(tick interval)
returns table (mine boolean, moment timestamptz, last_at timestamptz, stepped interval, era_before bigint, era bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  at       timestamptz := faultline.now();
  lease    interval;
  last     faultline.rounds;
  hold     timestamptz;
  passed   interval;
  back     interval;
  started  timestamptz := pg_postmaster_start_time();
  current  bigint;
begin
  if coalesce(round.tick not between interval '1 millisecond' and interval '1 day', true) then
    raise exception 'a tick lasts from a millisecond to a day, not %', coalesce(round.tick::text, 'null')
      using errcode = 'LS005', hint = 'A negative one would win every round and take each for a gap, which moves deadlines.';
  end if;

  select * into last
  from faultline.rounds as row
  where row.round_at <= at - round.tick
     or row.round_at > at + round.tick   -- the clock was set back, perhaps by a promotion: go on from here
  for no key update skip locked;
  if not found then
    return query select false, at, null::timestamptz, null::interval, null::bigint, null::bigint;
    return;
  end if;

  select setting.default_lease into lease from faultline.settings as setting;
  passed := case when isfinite(last.round_at) then at - last.round_at else interval '0' end;
  hold := case
    when passed > greatest(lease / 2, round.tick * 3) then at + lease
    when at between started and started + lease then started + lease
  end;

  -- A gap hurts every lease that is less than twice as long; the start of a server, any (none lasts over a day). One that
  -- follows before those had their time does not make the one before it shorter.
  if passed > round.tick * 3 then
    last.gap := case when at between last.gap_at and last.gap_at + least(last.gap * 2, interval '1 day')
                     then greatest(last.gap, passed) else passed end;
    last.gap_at := at;
    perform faultline.shift_deadlines(passed, last.round_at);
  elsif last.gap_at < started and at between started and started + interval '1 day' then
    last.gap := interval '2 days';
    last.gap_at := started;
  elsif passed < -round.tick then
    back := passed;
    last.gap_at := least(last.gap_at, at);
    perform faultline.clock_set_back(-back, at, at - round.tick * 3);
  end if;

  -- A young server does not shorten a hold that a gap began, and no hold outlasts a lease from now.
  current := (faultline.epoch() >> 40) + 1;
  update faultline.rounds as row
  set round_at = at,
      hold_until = least(greatest(last.hold_until, hold), at + lease),
      leads_until = case when back is null then row.leads_until else least(row.leads_until, at + interval '10 seconds') end,
      gap = last.gap,
      gap_at = last.gap_at,
      era = current;
  return query select true, at, nullif(last.round_at, '-infinity'), back, last.era, current;
end;
$$;
