-- dead -> queued: try a dead job again from the first attempt.
-- The job keeps its token, so the next claim gets a higher one.
create function faultline.replay(job_id bigint)
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  place   text;
  queue   text;
begin
  perform faultline.be_durable();
  place := faultline.lock_job(replay.job_id);
  if place <> 'dead' then
    raise exception 'job % is %, only a dead job can be replayed', replay.job_id, faultline.state_of(replay.job_id)
      using errcode = 'LS004', hint = 'See `faultline jobs list --state dead` for those that can.';
  end if;
  select replayed.queue into queue from faultline.raise_dead(array[replay.job_id]) as replayed;
  perform faultline.note_act('replay', replay.job_id, queue);
  return queue;
end;
$$;
