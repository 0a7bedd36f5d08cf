-- Forget a schedule; its jobs and the record of its occurrences stay. One that comes from code is made again by the next worker.
create function faultline.delete_schedule(name text, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  held faultline.schedules;
begin
  perform faultline.be_durable();
  held := faultline.lock_schedule(delete_schedule.name);
  delete from faultline.schedules as mine where mine.name = held.name;
  perform faultline.note_act('delete_schedule', queue => held.queue, detail => jsonb_build_object('schedule', held.name),
                             reason => delete_schedule.reason);
end;
$$;
