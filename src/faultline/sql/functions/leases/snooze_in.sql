-- running -> queued: as `snooze`, in the handler's own transaction.
create function faultline.snooze_in(
  job_id bigint, token bigint, claim uuid, delay faultline.wait, reason text default null,
  savepoint boolean default false)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.fence_in(snooze_in.job_id, snooze_in.token, snooze_in.claim, snooze_in.savepoint);
  return faultline.snooze(snooze_in.job_id, snooze_in.token, snooze_in.claim, snooze_in.delay, snooze_in.reason);
end;
$$;
