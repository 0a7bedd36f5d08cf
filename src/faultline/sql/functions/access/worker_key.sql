-- The name of the API key that a worker was registered with; no row when there is no such worker.
create function faultline.worker_key(worker int)
returns table (key_name text)
language sql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
  select known.key_name from faultline.workers as known where known.id = worker_key.worker
$$;
