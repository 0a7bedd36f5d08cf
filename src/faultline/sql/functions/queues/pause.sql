-- Stop claims from a queue; running jobs go on.
-- A queue that does not exist yet is created, so that it starts paused.
create function faultline.pause(queue faultline.queue_name)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.be_durable();
  insert into faultline.queues (name, paused_at) values (pause.queue, faultline.now())
  on conflict (name) do update set paused_at = coalesce(queues.paused_at, excluded.paused_at);
  update faultline.lanes as lane set paused = true where lane.queue = pause.queue and not lane.paused;
  perform faultline.note_act('pause', queue => pause.queue);
end;
$$;
