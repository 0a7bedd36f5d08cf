-- The last gap between two rounds: when it ended, and how long it was. Leases that nobody could renew in it are given their time again.
alter table faultline.rounds
  add column gap_at timestamptz not null default '-infinity',
  add column gap interval not null default interval '0',
  add column era bigint;   -- of the tokens, at the last round: it rises with each promotion, upgrade or restore

-- The lease that a worker's beats ask for: of a row, only the end of its lease is known.
alter table faultline.workers add column lease_for interval;
