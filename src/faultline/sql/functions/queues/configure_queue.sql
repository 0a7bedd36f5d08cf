-- Set how many due jobs a queue may hold, and how its jobs age. A null leaves a value as it is, a zero takes it away.
create function faultline.configure_queue(queue faultline.queue_name, max_depth int default null, age_after interval default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  kept faultline.queues;
begin
  perform faultline.be_durable();
  insert into faultline.queues as owner (name, max_depth, age_after)
  values (configure_queue.queue, nullif(configure_queue.max_depth, 0), nullif(configure_queue.age_after, interval '0'))
  on conflict (name) do update
  set max_depth = case when configure_queue.max_depth is null then owner.max_depth else excluded.max_depth end,
      age_after = case when configure_queue.age_after is null then owner.age_after else excluded.age_after end
  returning owner.* into kept;

  update faultline.lanes as lane
  set age_after = kept.age_after, is_full = lane.is_full and kept.max_depth is not null
  where lane.queue = configure_queue.queue;
  perform faultline.mark_full();
  perform faultline.note_act('configure_queue', queue => configure_queue.queue,
                             detail => jsonb_build_object('max_depth', kept.max_depth, 'age_after', kept.age_after));
end;
$$;
