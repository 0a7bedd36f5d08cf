-- running -> queued, with the attempt given back: how a lease ends when nothing was tried in earnest.
create function faultline.give_back(
  job_id bigint, token bigint, claim uuid, ending faultline.lease_end, delay interval, note text)
returns void
language plpgsql
volatile
as $$
declare
  held    faultline.active;
  moment  timestamptz;
begin
  perform faultline.be_durable();

  delete from faultline.active as job
  where job.id    = give_back.job_id
    and job.token = give_back.token
    and job.claim = give_back.claim
  returning job.* into held;

  if not found then
    perform faultline.refuse(give_back.job_id, give_back.token);
  end if;

  moment := faultline.now();
  perform faultline.enter(held, give_back.ending, moment, error => nullif(give_back.note, ''));

  held.attempt := held.attempt - 1;
  if give_back.delay <= interval '0' then
    perform faultline.line_up(held);
  else
    insert into faultline.later (
      id, run_at, token, created_at, lane, attempt, max_attempts, crashes, task, key, lease_for, timeout, retry, error, args,
      crashes_alone, trace, key_seed)
    values (
      held.id, moment + give_back.delay, held.token, held.created_at, held.lane, held.attempt, held.max_attempts,
      held.crashes, held.task, held.key, held.lease_for, held.timeout, held.retry,
      coalesce(left(nullif(give_back.note, ''), 8192), held.error), held.args, held.crashes_alone, held.trace,
      held.key_seed);
  end if;
end;
$$;
