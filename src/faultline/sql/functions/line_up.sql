-- Put a job at the end of its lane, free. Whatever comes back takes a new place, so a lane's floor only rises.
create function faultline.line_up(job faultline.active)
returns void
language sql
volatile
as $$
  insert into faultline.active (
    id, pos, token, created_at, lane, attempt, max_attempts, crashes, task, key, lease_for, timeout, retry, error, args,
    trace, due_at, crashes_alone, key_seed)
  values (
    job.id, nextval('faultline.places'), job.token, job.created_at, job.lane, job.attempt, job.max_attempts, job.crashes,
    job.task, job.key, job.lease_for, job.timeout, job.retry, job.error, job.args, job.trace,
    faultline.now(), job.crashes_alone, job.key_seed)
$$;
