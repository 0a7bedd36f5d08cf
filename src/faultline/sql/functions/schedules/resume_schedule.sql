-- Let a paused schedule go on from now. What fell into the pause is not enqueued; a backfill can make up for it.
create function faultline.resume_schedule(name text, reason text default null)
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
  held := faultline.lock_schedule(resume_schedule.name);
  if held.paused_at is null then
    perform faultline.read_durably();
    return;
  end if;
  update faultline.schedules as mine
  set paused_at = null, paused_by = null, changed_at = moment, revision = nextval('faultline.schedule_revisions'),
      next_at = case when mine.next_at > moment then mine.next_at
                     when mine.every is not null then faultline.next_period(mine.starts_at, mine.every, moment) end,
      ended_at = case when mine.at <= moment then moment else mine.ended_at end
  where mine.name = held.name;
  perform faultline.note_act('resume_schedule', queue => held.queue, detail => jsonb_build_object('schedule', held.name),
                             reason => resume_schedule.reason);
end;
$$;
