-- Decide which caller makes this round: `mine` is true for the one that moves `round_at` on by a tick.
-- The others have nothing to do, unless the round is `neglected`: its maker does not reap, or holds the row.
-- After an outage every lease looks expired, though every worker is well. Then reaping stops for one default lease, and a lease is
-- taken only after its full length since the outage (see reap). A clock that was set is noticed here, and its effects are corrected.
create function faultline.round(tick interval)
returns table (mine boolean, moment timestamptz, last_at timestamptz, stepped interval, era_before bigint, era bigint, neglected boolean)
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
  slot     int;
begin
  if coalesce(extract(epoch from round.tick) not between 0.000001 and 86400, true) then
    raise exception 'a tick is above zero and at most a day, not %', coalesce(round.tick::text, 'null')
      using errcode = 'LS005', hint = 'A negative one would win every round and take each for a gap, which moves deadlines.';
  end if;

  perform faultline.end_when_idle();   -- heartbeats and completions wait for the rows that it changes
  select * into last
  from faultline.rounds as row
  where row.round_at <= at - round.tick
     or row.round_at > at + round.tick   -- the clock was set back, perhaps by a promotion: go on from here
  for no key update skip locked;
  if not found then
    return query
      select false, at, null::timestamptz, null::interval, null::bigint, null::bigint,
             least(row.round_at, row.reaped_at) < at - greatest(round.tick * 5, interval '30 seconds')
      from faultline.rounds as row;
    return;
  end if;

  select setting.default_lease into lease from faultline.settings as setting;
  passed := case when isfinite(last.round_at) then at - last.round_at else interval '0' end;
  hold := case
    when passed > greatest(lease / 2, round.tick * 3) then at + lease
    when at between started and started + lease then started + lease
  end;

  -- A gap can hurt every lease that is less than twice as long as the gap; a server start, any lease (none lasts over a day).
  if at between started and started + interval '1 day' then
    last.gap[20] := interval '3 days';
    last.gap_at[20] := started;
  end if;
  if passed > greatest(round.tick * 3, interval '250 ms') then
    slot := least(greatest(ceil(log(2.0, extract(epoch from passed) * 4)), 1), 19);
    last.gap[slot] := greatest(passed, case when at <= last.gap_at[slot] + last.gap[slot] * 2 then last.gap[slot] end);
    last.gap_at[slot] := at;
  elsif passed < -round.tick then
    back := passed;
    last.gap_at := array(select case when gap.ended > at then at else gap.ended end
                         from generate_series(1, 20) as slot (n), lateral (select last.gap_at[slot.n]) as gap (ended) order by slot.n);
    perform faultline.clock_set_back(-back, at, at - round.tick * 3);
  end if;
  -- The bound is not the caller's tick alone: with a short tick, each round would move the deadlines.
  if passed > greatest(round.tick * 3, lease / 5) then
    perform faultline.shift_deadlines(passed, last.round_at);
  end if;

  -- A server start does not shorten a hold from a gap, and no hold lasts longer than one lease from now.
  current := (faultline.epoch() >> 40) + 1;
  update faultline.rounds as row
  set round_at = at,
      hold_until = least(greatest(last.hold_until, hold), at + lease),
      leads_until = case when back is null then row.leads_until else least(row.leads_until, at + interval '10 seconds') end,
      gap = last.gap,
      gap_at = last.gap_at,
      era = current;
  return query select true, at, nullif(last.round_at, '-infinity'), back, last.era, current, false;
end;
$$;
