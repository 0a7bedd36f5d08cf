-- The last gap between two rounds: its end and its length. A lease that could not be renewed in the gap gets its full time again.
alter table faultline.rounds
  add column gap_at timestamptz not null default '-infinity',
  add column gap interval not null default interval '0',
  add column era bigint;   -- the epoch of tokens at the last round: it rises with each promotion, upgrade or restore

-- The lease that a worker's heartbeats ask for. A job's row has only the end of its lease.
alter table faultline.workers add column lease_for interval;
