-- queued for later -> queued now: make a scheduled job due at once; a limited one waits at its gate.
create function faultline.retry_now(job_id bigint)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  place  text;
  queue  text;
  line   int;
  moved  boolean := false;
begin
  perform faultline.be_durable();
  place := faultline.lock_job(retry_now.job_id);
  if place = 'later' then
    select job.lane, job.place is null into line, moved from faultline.later as job where job.id = retry_now.job_id;
    if moved then   -- a job at its gate is due already, and stays where it is in the line
      perform faultline.requeue(faultline.fetch_later(retry_now.job_id));
    end if;
  elsif faultline.state_of(retry_now.job_id) <> 'queued' then
    raise exception 'job % is %, it is not waiting for a retry', retry_now.job_id, faultline.state_of(retry_now.job_id)
      using errcode = 'LS004', hint = 'Replay a dead job; a running one needs nothing; an ended one stays ended.';
  end if;
  if place = 'active' then
    select job.lane into line from faultline.active as job where job.id = retry_now.job_id;
  end if;
  select lane.queue into queue from faultline.lanes as lane where lane.id = line;
  if moved then
    perform faultline.note_act('retry_now', retry_now.job_id, queue);
  end if;
  return queue;
end;
$$;
