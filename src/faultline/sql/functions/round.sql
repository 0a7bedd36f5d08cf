-- Whose round is it? True for the one caller that moves `round_at` on by a tick; the others have nothing to do.
-- After an outage every lease looks expired though every worker is well: then nobody reaps for one lease.
create function faultline.round(tick interval)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment  timestamptz := faultline.now();
  lease   interval;
  last    faultline.rounds;
  hold    timestamptz;
begin
  select * into last
  from faultline.rounds as row
  where row.round_at <= moment - round.tick
     or row.round_at > moment + round.tick   -- the clock was set back, perhaps by a promotion: go on from here
  for no key update skip locked;
  if not found then
    return false;
  end if;

  select setting.default_lease into lease from faultline.settings as setting;
  hold := case
    when isfinite(last.round_at) and moment - last.round_at > greatest(lease / 2, round.tick * 3) then moment + lease
    when moment between pg_postmaster_start_time() and pg_postmaster_start_time() + lease then pg_postmaster_start_time() + lease
  end;

  -- A young server does not shorten a hold that a gap began, and no hold outlasts a lease from now.
  update faultline.rounds as row
  set round_at = moment,
      hold_until = least(greatest(last.hold_until, hold), moment + lease);
  return true;
end;
$$;
