-- Make a schedule, or change it; the answer is `new`, `changed` or `same`.
-- With its times, its next time changes too: it is computed here for a period and a moment, and by a watchdog for a cron expression.
-- It is never before the present, so no occurrence comes twice.
create function faultline.write_schedule(wanted faultline.schedules, moment timestamptz)
returns text
language plpgsql
volatile
as $$
declare
  old    faultline.schedules;
  first  timestamptz;
begin
  -- The rules of a job are checked as `enqueue` checks them. Its lane is made here, and not by the watchdog.
  perform faultline.text_of(wanted.retry)::faultline.retry_text where wanted.retry is not null;
  perform faultline.lane_of(wanted.queue, wanted.priority);
  -- In seconds: a day of a period has 24 hours, whatever the time zone of a session.
  wanted.every := make_interval(secs => extract(epoch from wanted.every)::double precision);
  wanted.release := coalesce(wanted.release, '{}');

  loop
    select * into old from faultline.schedules as row where row.name = wanted.name for no key update;
    exit when found;
    wanted.starts_at := coalesce(wanted.starts_at, date_trunc('milliseconds', moment));
    wanted.next_at := case when wanted.every is not null then faultline.next_period(wanted.starts_at, wanted.every, moment)
                           when wanted.at > moment then wanted.at end;
    wanted.ended_at := case when wanted.at <= moment then moment end;
    wanted.revision := nextval('faultline.schedule_revisions');
    wanted.created_at := moment;
    wanted.changed_at := moment;
    insert into faultline.schedules select wanted.* on conflict do nothing;
    if found then
      return 'new';
    end if;
  end loop;

  wanted.starts_at := coalesce(wanted.starts_at, old.starts_at);
  first := case when wanted.every is not null then faultline.next_period(wanted.starts_at, wanted.every, moment)
                when wanted.at > moment then wanted.at end;
  if (wanted.cron, wanted.time_zone, wanted.every, wanted.at, wanted.starts_at)
     is distinct from (old.cron, old.time_zone, old.every, old.at, old.starts_at) then
    wanted.next_at := first;
    wanted.ended_at := case when wanted.at <= moment then moment end;
  else
    wanted.next_at := old.next_at;
    wanted.ended_at := old.ended_at;
  end if;
  wanted.paused_at := old.paused_at;
  wanted.paused_by := old.paused_by;
  -- What a release had paused goes on with the next release that has it. What fell into the pause is not made up for.
  if old.paused_by = 'release' then
    wanted.paused_at := null;
    wanted.paused_by := null;
    wanted.next_at := case when wanted.next_at <= moment then first else wanted.next_at end;
    wanted.ended_at := case when wanted.at <= moment then moment else wanted.ended_at end;
  end if;

  if to_jsonb(wanted) - '{revision,held_until,last_at,error,created_at,changed_at}'::text[]
     = to_jsonb(old) - '{revision,held_until,last_at,error,created_at,changed_at}'::text[] then
    return 'same';
  end if;
  update faultline.schedules as row
  set app = wanted.app, release = wanted.release, task = wanted.task, queue = wanted.queue, priority = wanted.priority,
      args = wanted.args, max_attempts = wanted.max_attempts, lease_for = wanted.lease_for, timeout = wanted.timeout,
      retry = wanted.retry, cron = wanted.cron, time_zone = wanted.time_zone, every = wanted.every, at = wanted.at,
      starts_at = wanted.starts_at, jitter = wanted.jitter, missed = wanted.missed, overlap = wanted.overlap,
      revision = nextval('faultline.schedule_revisions'), next_at = wanted.next_at, ended_at = wanted.ended_at,
      paused_at = wanted.paused_at, paused_by = wanted.paused_by, held_until = null, error = null, changed_at = moment
  where row.name = wanted.name;
  return 'changed';
end;
$$;
