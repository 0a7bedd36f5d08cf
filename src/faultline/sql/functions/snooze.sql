-- running -> queued: not now; come back after `delay`, with the attempt given back.
create function faultline.snooze(job_id bigint, token bigint, claim uuid, delay faultline.wait, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.give_back(snooze.job_id, snooze.token, snooze.claim, 'snoozed', snooze.delay, snooze.reason);
end;
$$;
