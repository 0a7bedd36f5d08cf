-- The lane of a queue at a priority, made when it is first asked for.
create function faultline.lane_of(queue faultline.queue_name, priority faultline.rank)
returns int
language plpgsql
volatile
as $$
declare
  found_lane int;
begin
  select lane.id into found_lane
  from faultline.lanes as lane
  where lane.queue = lane_of.queue and lane.priority = lane_of.priority;

  if found_lane is not null then
    return found_lane;
  end if;

  insert into faultline.queues (name) values (lane_of.queue) on conflict do nothing;

  -- For share: pause and keep change a queue and then its lanes, and would pass by a lane that is not committed yet.
  insert into faultline.lanes (queue, priority, paused, keep)
  select owner.name, lane_of.priority, owner.paused_at is not null, owner.keep
  from faultline.queues as owner
  where owner.name = lane_of.queue
  for share
  on conflict do nothing;

  -- A second statement: the winner of a race is not in the snapshot of the first.
  select lane.id into strict found_lane
  from faultline.lanes as lane
  where lane.queue = lane_of.queue and lane.priority = lane_of.priority;
  return found_lane;
end;
$$;
