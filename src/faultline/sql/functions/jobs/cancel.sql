-- queued | running -> cancelled: end a job that is no longer wanted.
-- The worker of a running job learns it from its next heartbeat, and can commit nothing for the job.
create function faultline.cancel(job_id bigint, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  held   faultline.active;
  place  text;
begin
  perform faultline.be_durable();
  place := faultline.lock_job(cancel.job_id);

  if place = 'active' then
    delete from faultline.active as job where job.id = cancel.job_id returning job.* into held;
  elsif place = 'later' then
    held := faultline.fetch_later(cancel.job_id);
  elsif faultline.state_of(cancel.job_id) = 'cancelled' then
    perform faultline.read_durably();
    return;   -- a repeated cancel has no effect
  else
    raise exception 'job % is %, it cannot be cancelled', cancel.job_id, faultline.state_of(cancel.job_id)
      using errcode = 'LS004', hint = 'Only a queued or running job can be cancelled.';
  end if;

  if held.claim is not null and held.limit_id is not null then
    perform faultline.wake((select lane.queue from faultline.lanes as lane where lane.id = held.lane));   -- its slot is free
  end if;
  perform faultline.write_ledger(held, 'cancelled', faultline.now(), error => cancel.reason);
  perform faultline.note_act('cancel', held.id, (select lane.queue from faultline.lanes as lane where lane.id = held.lane),
                             reason => cancel.reason);
end;
$$;
