-- queued | running -> cancelled: end the jobs of a schedule before its next one, unless a session has locked one of them.
-- False: nothing was done, and the caller tries again later. It never waits, so that one job holds up no other schedule.
create function faultline.cancel_unlocked(job_ids bigint[], reason text)
returns boolean
language plpgsql
volatile
as $$
declare
  held bigint[];
begin
  held := array(select job.id from faultline.active as job where job.id = any (cancel_unlocked.job_ids) for update skip locked)
       || array(select job.id from faultline.later as job where job.id = any (cancel_unlocked.job_ids) for update skip locked);
  if cardinality(held) < cardinality(cancel_unlocked.job_ids) then
    return false;
  end if;
  perform faultline.cancel(one.id, cancel_unlocked.reason) from unnest(held) as one (id);
  return true;
end;
$$;
