-- (nothing) -> queued: a job of a schedule now, whatever its times say, also while it is paused.
create function faultline.trigger_schedule(name text, reason text default null)
returns table (job_id bigint, queue text, at timestamptz)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment  timestamptz := faultline.now();
  free    timestamptz := moment;
  held    faultline.schedules;
  made    record;
begin
  perform faultline.be_durable();
  perform faultline.check_server();
  held := faultline.lock_schedule(trigger_schedule.name);
  -- Another trigger, or an occurrence that was due, may have this very microsecond; the lock keeps the next free one free.
  while exists (select from faultline.occurrences as noted where noted.schedule = held.name and noted.at = free) loop
    free := free + interval '1 microsecond';
  end loop;
  select * into strict made from faultline.enqueue_occurrences(held, array[free], 'triggered', moment);
  perform faultline.note_act('trigger_schedule', made.job_id, held.queue, jsonb_build_object('schedule', held.name),
                             trigger_schedule.reason);
  return query select made.job_id, held.queue::text, made.at;
end;
$$;
