-- What became of a lease that its handler has settled in a transaction of its own, by `complete_in`, `fail_in` or `snooze_in`.
-- `running`: that was rolled back. `busy`: the transaction is still open. `gone`: no row has the answer. Any other value is the
-- lease's end. Of a success that its queue keeps no row of, no table has the job: every other end leaves an entry.
create function faultline.outcome_in(job_id bigint, token bigint, claim uuid)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
-- The handler has returned, so its commit is over or was forgotten: nothing is gained by a long wait. A setting of the
-- function is put back at its end: the caller's transaction waits as it did.
set lock_timeout = 300
as $$
declare
  answer text;
begin
  begin
    answer := faultline.outcome(outcome_in.job_id, outcome_in.token, outcome_in.claim);
  exception when lock_not_available then
    return 'busy';
  end;

  if answer = 'gone' and not exists (
    select from faultline.active as job where job.id = outcome_in.job_id
    union all
    select from faultline.later as job where job.id = outcome_in.job_id
    union all
    select from faultline.dead as job where job.id = outcome_in.job_id
    union all
    select from faultline.ledger as entry where entry.job_id = outcome_in.job_id
  ) then
    perform faultline.read_durably();
    return 'succeeded';
  end if;
  return answer;
end;
$$;
