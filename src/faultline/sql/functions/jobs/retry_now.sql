-- queued for later -> queued now: make a scheduled job due at once.
create function faultline.retry_now(job_id bigint)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  place  text;
  queue  text;
begin
  perform faultline.be_durable();
  place := faultline.lock_job(retry_now.job_id);
  if place = 'later' then
    perform faultline.requeue(faultline.fetch_later(retry_now.job_id));
  elsif faultline.state_of(retry_now.job_id) <> 'queued' then
    raise exception 'job % is %, it is not waiting for a retry', retry_now.job_id, faultline.state_of(retry_now.job_id)
      using errcode = 'LS004', hint = 'Replay a dead job; a running one needs nothing; an ended one stays ended.';
  end if;
  select lane.queue into queue
  from faultline.active as job
  join faultline.lanes as lane on lane.id = job.lane
  where job.id = retry_now.job_id;
  if place = 'later' then
    perform faultline.note_act('retry_now', retry_now.job_id, queue);
  end if;
  return queue;
end;
$$;
