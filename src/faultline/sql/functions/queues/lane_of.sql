-- The lane of a queue at a priority; the first call creates it.
create function faultline.lane_of(queue faultline.queue_name, priority faultline.rank)
returns int
language plpgsql
volatile
as $$
declare
  found_lane int;
  patience   text;
begin
  select lane.id into found_lane
  from faultline.lanes as lane
  where lane.queue = lane_of.queue and lane.priority = lane_of.priority;

  if found_lane is not null then
    return found_lane;
  end if;

  -- Another transaction may be creating the lane and stay open: the wait for it has a limit. A lower limit of the caller stays.
  -- A SET clause on the function would cost each call that finds its lane.
  patience := current_setting('lock_timeout');
  begin
    if patience::interval not between interval '1 ms' and interval '5 s' then
      perform set_config('lock_timeout', '5s', true);
    end if;
    insert into faultline.queues (name) values (lane_of.queue) on conflict do nothing;

    -- For share: pause and keep change a queue and then its lanes, and would miss a lane that is not committed yet.
    insert into faultline.lanes (queue, priority, paused, keep, age_after)
    select owner.name, lane_of.priority, owner.paused_at is not null, owner.keep, owner.age_after
    from faultline.queues as owner
    where owner.name = lane_of.queue
    for share
    on conflict do nothing;
    perform set_config('lock_timeout', patience, true);
  exception when lock_not_available then
    raise exception 'queue % is being made or changed by a transaction that stays open; nothing was written', lane_of.queue
      using errcode = 'lock_not_available', hint = 'Try again once it has ended.';
  end;

  -- A second statement: a lane that another transaction has just created is not in the snapshot of the first.
  select lane.id into strict found_lane
  from faultline.lanes as lane
  where lane.queue = lane_of.queue and lane.priority = lane_of.priority;
  return found_lane;
end;
$$;
