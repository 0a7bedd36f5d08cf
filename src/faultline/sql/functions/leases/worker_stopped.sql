-- Record that a worker has stopped.
create function faultline.worker_stopped(worker int)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment timestamptz := faultline.now();
begin
  update faultline.workers as known
  set stopped_at = moment, seen_at = moment
  where known.id = worker_stopped.worker;
end;
$$;
