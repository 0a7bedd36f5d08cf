-- Write the ledger's entry for an ended lease; if the job has ended too, start the window of its key.
create function faultline.write_ledger(
  job faultline.active, outcome faultline.lease_end, moment timestamptz,
  result faultline.document default null, error text default null)
returns void
language plpgsql
volatile
as $$
declare
  ends  boolean := write_ledger.outcome in ('succeeded', 'cancelled');
  lane  faultline.lanes;
begin
  select * into lane from faultline.lanes where lanes.id = job.lane;

  if write_ledger.outcome <> 'succeeded' or lane.keep is distinct from 'nothing' then
    insert into faultline.ledger (
      job_id, slot, token, created_at, claimed_at, settled_at, claim, lane, worker, attempt,
      max_attempts, crashes, outcome, task, key, error, args, result)
    values (
      job.id, case when ends then 0 else job.token end, job.token, job.created_at, job.claimed_at, moment, job.claim, job.lane,
      job.claimed_by, job.attempt, job.max_attempts, job.crashes, write_ledger.outcome, job.task, job.key, left(write_ledger.error, 8192),
      case when ends and lane.keep = 'full' then job.args end,
      case when ends and lane.keep = 'full' then faultline.text_of(write_ledger.result) end);
  end if;

  if job.key is not null and (ends or write_ledger.outcome = 'dead') then
    perform faultline.lapse_key(lane.queue, job.key, job.id, moment);
  end if;
end;
$$;
