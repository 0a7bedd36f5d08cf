-- Let no occurrence of a schedule be enqueued; jobs that were enqueued go on.
create function faultline.pause_schedule(name text, reason text default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment  timestamptz := faultline.now();
  held    faultline.schedules;
begin
  perform faultline.be_durable();
  held := faultline.lock_schedule(pause_schedule.name);
  if held.paused_by = 'person' then
    perform faultline.read_durably();
    return;
  end if;
  update faultline.schedules as mine
  set paused_at = coalesce(mine.paused_at, moment), paused_by = 'person', changed_at = moment,
      revision = nextval('faultline.schedule_revisions')
  where mine.name = held.name;
  perform faultline.note_act('pause_schedule', queue => held.queue, detail => jsonb_build_object('schedule', held.name),
                             reason => pause_schedule.reason);
end;
$$;
