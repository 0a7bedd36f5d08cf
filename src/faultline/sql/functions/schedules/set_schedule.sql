-- Make a schedule by hand, or change one; with a cron expression a watchdog computes its next time.
--
--   select faultline.set_schedule('report', 'send_report', every => '5 minutes');
--   select faultline.set_schedule('nightly', 'clean_up', '{"days": 30}', cron => '0 3 * * *', time_zone => 'Europe/Berlin');
create function faultline.set_schedule(
  name          faultline.schedule_name,
  task          faultline.task_name,
  args          faultline.document default '{}',
  cron          text default null,
  time_zone     text default null,
  every         faultline.period default null,
  at            faultline.moment default null,
  queue         faultline.queue_name default 'default',
  priority      faultline.rank default 0,
  max_attempts  faultline.attempt_budget default 10,
  lease_for     faultline.lease_time default null,
  timeout       faultline.run_time default null,
  retry         faultline.document default null,
  missed        text default 'once',
  overlap       text default 'allow',
  jitter        faultline.spread default '0',
  starts_at     faultline.moment default null)
returns table (state text, revision bigint, next_at timestamptz, moment timestamptz)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  now_is  timestamptz := faultline.now();
  wanted  faultline.schedules;
  owner   text;
  wrote   text;
begin
  perform faultline.be_durable();
  perform faultline.check_server();
  if set_schedule.args is null then
    raise exception 'the args of a schedule are an object; nothing was written'
      using errcode = 'LS005', hint = 'Leave them out for none.';
  end if;
  select row.app into owner from faultline.schedules as row where row.name = set_schedule.name;
  if owner is not null then
    raise exception 'schedule % comes from the code of app %; nothing was changed', set_schedule.name, owner
      using errcode = 'LS004', hint = 'Change it there, or pause it here.';
  end if;
  if set_schedule.at <= now_is then
    raise exception 'schedule %: % has passed; nothing was written', set_schedule.name, set_schedule.at
      using errcode = 'LS005', hint = 'Name a moment to come, or enqueue the job now.';
  end if;
  wanted := faultline.wanted_schedule(jsonb_strip_nulls(jsonb_build_object(
    'name', set_schedule.name, 'task', set_schedule.task, 'cron', set_schedule.cron, 'time_zone', set_schedule.time_zone,
    'every', set_schedule.every, 'at', set_schedule.at, 'queue', set_schedule.queue, 'priority', set_schedule.priority,
    'max_attempts', set_schedule.max_attempts, 'lease_for', set_schedule.lease_for, 'timeout', set_schedule.timeout,
    'missed', set_schedule.missed, 'overlap', set_schedule.overlap, 'jitter', set_schedule.jitter,
    'starts_at', set_schedule.starts_at)));
  wanted.args := faultline.text_of(set_schedule.args);
  wanted.retry := set_schedule.retry;
  wrote := faultline.write_schedule(wanted, now_is);
  if wrote <> 'same' then
    perform faultline.note_act('set_schedule', queue => wanted.queue, detail => jsonb_build_object('schedule', wanted.name));
  else
    perform faultline.read_durably();
  end if;
  return query
  select wrote, row.revision, row.next_at, now_is from faultline.schedules as row where row.name = set_schedule.name;
end;
$$;
