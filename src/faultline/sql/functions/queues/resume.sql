-- Allow claims from a paused queue again.
create function faultline.resume(queue faultline.queue_name)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.be_durable();
  update faultline.queues as owner set paused_at = null where owner.name = resume.queue;
  if not found then
    raise exception 'there is no queue %', quote_literal(resume.queue)
      using errcode = 'LS003', hint = 'See `faultline queues list`.';
  end if;
  update faultline.lanes as lane set paused = false where lane.queue = resume.queue and lane.paused;
  perform faultline.note_act('resume', queue => resume.queue);
end;
$$;
