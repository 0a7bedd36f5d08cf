-- running -> queued | dead: put the job back for `delay`; the attempt does not count.
-- With `unknown_task` the worker has no handler for the task. The job waits for a worker that has one, and is dead after a day in
-- which every lease ended so.
create function faultline.snooze(
  job_id bigint, token bigint, claim uuid, delay faultline.wait, reason text default null, unknown_task boolean default false)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  held  faultline.active;
begin
  if not coalesce(snooze.unknown_task, false) then
    perform faultline.give_back(snooze.job_id, snooze.token, snooze.claim, 'snoozed', snooze.delay, snooze.reason);
    return 'queued';
  end if;

  -- Without a lock: the row of a held lease does not change this, and a write for a lost lease is refused below.
  select * into held
  from faultline.active as job
  where job.id = snooze.job_id and job.token = snooze.token and job.claim = snooze.claim;

  if held.claimed_at - held.unknown_since > interval '1 day' then
    perform faultline.bury(
      snooze.job_id, snooze.token, snooze.claim, format('no worker knew the task %s for a day', held.task));
    return 'dead';
  end if;

  perform faultline.give_back(
    snooze.job_id, snooze.token, snooze.claim, 'snoozed', snooze.delay,
    format('no task of this name is known to this worker; left for one that knows it: %s', held.task),
    unknown_task => true);
  return 'queued';
end;
$$;
