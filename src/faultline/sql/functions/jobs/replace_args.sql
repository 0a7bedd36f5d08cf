-- queued -> queued: give a job that has never begun other args, and a later moment if one is named; false where it began, or is held.
-- A job that began keeps its args: its handler may have sent its idempotency keys to the outside world with the old ones.
create function faultline.replace_args(job_id bigint, args text, due_at timestamptz, longest interval, moment timestamptz)
returns boolean
language plpgsql
volatile
as $$
begin
  perform from faultline.active as job
  where job.id = replace_args.job_id and job.claim is null and job.token = 0
    and (job.expires_at is null or job.expires_at > moment)
  for no key update skip locked;
  if found then
    update faultline.active as job set args = replace_args.args where job.id = replace_args.job_id;
    return true;
  end if;

  perform from faultline.later as job
  where job.id = replace_args.job_id and job.token = 0
    and (job.expires_at is null or job.expires_at > moment)
  for no key update skip locked;
  if not found then
    return false;
  end if;
  update faultline.later as job
  set args = replace_args.args,
      run_at = coalesce(least(replace_args.due_at, job.created_at + longest), job.run_at)
  where job.id = replace_args.job_id;
  return true;
end;
$$;
