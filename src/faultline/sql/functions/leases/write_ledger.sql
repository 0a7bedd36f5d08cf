-- Write the ledger's entry for a lease that ended without success; if the job has ended too, start the window of its key.
-- A success is written by complete.sql and complete_many.sql.
create function faultline.write_ledger(
  job faultline.active, outcome faultline.lease_end, moment timestamptz, error text default null)
returns void
language plpgsql
volatile
as $$
declare
  ends  boolean := write_ledger.outcome = 'cancelled';
  lane  faultline.lanes;
begin
  select * into lane from faultline.lanes where lanes.id = job.lane;

  insert into faultline.ledger (
    job_id, slot, token, created_at, claimed_at, settled_at, claim, lane, worker, attempt,
    max_attempts, crashes, outcome, task, key, error, args)
  values (
    job.id, case when ends then 0 else job.token end, job.token, job.created_at, job.claimed_at, moment, job.claim, job.lane,
    job.claimed_by, job.attempt, job.max_attempts, job.crashes, write_ledger.outcome, job.task, job.key, left(write_ledger.error, 8192),
    case when ends and lane.keep = 'full' then job.args end);

  if job.key is not null and (ends or write_ledger.outcome = 'dead') then
    perform faultline.lapse_key(lane.queue, job.key, job.id, moment);
  end if;
end;
$$;
