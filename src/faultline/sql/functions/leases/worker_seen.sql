-- Record a worker's sign of life and the lease that it asks for.
-- It never waits: a session that locks the worker's row must not delay its heartbeat.
create function faultline.worker_seen(worker int, moment timestamptz, lease interval)
returns void
language sql
volatile
as $$
  update faultline.workers as known
  set seen_at = moment,
      lease_for = worker_seen.lease
  from (select id from faultline.workers where id = worker_seen.worker for no key update skip locked) as free
  where known.id = free.id
$$;
