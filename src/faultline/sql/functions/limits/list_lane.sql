-- Note that jobs of a limit wait in a lane, so that its claims look at the limit; the first job of both does so.
create function faultline.list_lane(limit_id int, lane int)
returns void
language plpgsql
volatile
as $$
declare
  patience text;
  line     faultline.lanes;
begin
  select * into line from faultline.lanes as known where known.id = list_lane.lane;
  if exists (
    select from faultline.limited_lanes as listed
    where listed.queue = line.queue and listed.lane = line.id and listed.limit_id = list_lane.limit_id)
  then
    return;
  end if;

  perform setval('faultline.limits_used', 1);
  -- Another transaction may be adding it and stay open: the wait for it has a limit, as in lane_of.
  patience := current_setting('lock_timeout');
  begin
    if patience::interval not between interval '1 ms' and interval '5 s' then
      perform set_config('lock_timeout', '5s', true);
    end if;
    insert into faultline.limited_lanes (queue, lane, limit_id) values (line.queue, line.id, list_lane.limit_id)
    on conflict do nothing;
    perform set_config('lock_timeout', patience, true);
  exception when lock_not_available then
    raise exception 'queue % gets its first limited job by a transaction that stays open; nothing was written', line.queue
      using errcode = 'lock_not_available', hint = 'Try again once it has ended.';
  end;
end;
$$;
