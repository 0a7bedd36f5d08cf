-- Whether another live worker serves a queue: a hint, ownership never depends on it.
create function faultline.others_serve(queue text, worker int)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select from faultline.workers as other
    where other.queues @> array[others_serve.queue]
      and other.id is distinct from others_serve.worker
      and other.stopped_at is null
      and other.seen_at > faultline.now() - interval '1 minute');
end;
$$;
