-- What the ledger keeps of a queue's finished jobs: full (args and result), outline, or nothing of successes.
create function faultline.keep(queue faultline.queue_name, what faultline.keeping)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.be_durable();
  insert into faultline.queues (name, keep) values (keep.queue, keep.what)
  on conflict (name) do update set keep = excluded.keep;
  update faultline.lanes as lane set keep = keep.what where lane.queue = keep.queue;
  perform faultline.note_act('keep', queue => keep.queue, detail => jsonb_build_object('keep', keep.what));
end;
$$;
