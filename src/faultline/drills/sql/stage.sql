-- What a drill writes down beside the queue's own tables; made in a schema of its own, and dropped with it.

-- No unique constraint, on purpose: only the fence keeps the work from being committed twice. (It would also make the
-- second worker wait for the first one's uncommitted row, and the first is frozen.)
create table effects (
  job_id  bigint not null,
  token   bigint not null,
  worker  text not null,
  wrote   text not null,
  at      timestamptz not null default clock_timestamp()
);

-- What was done to the processes, by the database's clock, so that it can be told in one breath with the ledger.
create table sightings (
  job_id  bigint not null,
  who     text not null,
  what    text not null,
  at      timestamptz not null default clock_timestamp(),
  note    text
);
