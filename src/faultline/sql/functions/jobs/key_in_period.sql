-- The key of this period: `report@3600/489873` for the hour that it is, by the database's clock.
create function faultline.key_in_period(key text, period interval, moment timestamptz)
returns text
language plpgsql
immutable
as $$
declare
  seconds  bigint := extract(epoch from period);
begin
  if seconds < 1 then
    raise exception 'a period of keys is a second or longer, not %', period
      using errcode = 'LS005', hint = 'Give key_for the period, such as 1 hour.';
  end if;
  return format('%s@%s/%s', key, seconds, floor(extract(epoch from moment) / seconds)::bigint);
end;
$$;
