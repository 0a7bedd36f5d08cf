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

-- A commit can be held, too: a transaction with work of a job stops here, inside the COMMIT, while its barrier is closed.
create function hold_commit() returns trigger language plpgsql as $$
begin
  perform set_config('lock_timeout', '60s', true);
  perform pg_advisory_xact_lock_shared(hashtextextended(current_schema() || '/commit of job ' || new.job_id, 0));
  return null;
end;
$$;

create constraint trigger a_commit_can_be_held after insert on effects
  deferrable initially deferred for each row execute function hold_commit();

-- What was done to the processes, by the database's clock, so that it can be read together with the ledger.
create table sightings (
  job_id  bigint not null,
  who     text not null,
  what    text not null,
  at      timestamptz not null default clock_timestamp(),
  note    text
);

-- What clients were answered: which job they were named, or that their key names another request.
create table submissions (
  job_id  bigint not null,   -- the job that the key names in the end
  who     text not null,
  amount  int not null,
  answer  text not null,
  named   bigint,
  times   int not null,
  after   text not null      -- what had happened before: the kill, the restart, the job's end
);
