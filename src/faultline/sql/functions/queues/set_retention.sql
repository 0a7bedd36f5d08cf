-- Set what the ledger keeps of a queue's finished jobs: full (args and result), outline, or nothing of successes.
create function faultline.set_retention(queue faultline.queue_name, what faultline.keeping)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.be_durable();
  insert into faultline.queues (name, keep) values (set_retention.queue, set_retention.what)
  on conflict (name) do update set keep = excluded.keep;
  update faultline.lanes as lane set keep = set_retention.what where lane.queue = set_retention.queue;
  perform faultline.note_act('set_retention', queue => set_retention.queue, detail => jsonb_build_object('keep', set_retention.what));
end;
$$;
