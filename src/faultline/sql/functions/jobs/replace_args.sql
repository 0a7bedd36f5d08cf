-- queued -> queued: give a job that has never begun other args, and a later moment if one is named; false where it began, or is held.
-- False as well where the new job belongs to another gate: the slot that this one waits for, or holds, is that of its own key.
-- A job that began keeps its args: its handler may have sent its idempotency keys to the outside world with the old ones.
create function faultline.replace_args(
  job_id bigint, args text, due_at timestamptz, longest interval, moment timestamptz, limit_id int, gate bigint)
returns boolean
language plpgsql
volatile
as $$
begin
  perform from faultline.active as job
  where job.id = replace_args.job_id and job.claim is null and job.token = 0
    and (job.expires_at is null or job.expires_at > moment)
    and (job.limit_id, job.gate) is not distinct from (replace_args.limit_id, replace_args.gate)
  for no key update skip locked;
  if found then
    update faultline.active as job set args = replace_args.args where job.id = replace_args.job_id;
    return true;
  end if;

  perform from faultline.later as job
  where job.id = replace_args.job_id and job.token = 0
    and (job.expires_at is null or job.expires_at > moment)
    and (job.limit_id, job.gate) is not distinct from (replace_args.limit_id, replace_args.gate)
  for no key update skip locked;
  if not found then
    return false;
  end if;
  update faultline.later as job
  set args = replace_args.args,
      run_at = coalesce(least(replace_args.due_at, job.created_at + longest), job.run_at),
      place = case when replace_args.due_at is null then job.place end   -- one that waits longer leaves its gate until then
  where job.id = replace_args.job_id;
  return true;
end;
$$;
