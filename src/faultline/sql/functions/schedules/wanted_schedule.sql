-- The row of a schedule from a document, with the defaults of what it does not name; other fields are refused by name.
create function faultline.wanted_schedule(spec jsonb)
returns faultline.schedules
language plpgsql
stable
as $$
declare
  wanted  faultline.schedules;
  other   text;
begin
  if jsonb_typeof(spec) is distinct from 'object' then
    raise exception 'a schedule is an object with a name, a task, and one of cron, every and at'
      using errcode = 'LS005';
  end if;
  select given.field into other
  from jsonb_object_keys(spec) as given (field)
  where given.field not in ('name', 'task', 'args', 'queue', 'priority', 'max_attempts', 'lease_for', 'timeout', 'retry', 'cron',
                            'time_zone', 'every', 'at', 'starts_at', 'jitter', 'missed', 'overlap')
  limit 1;
  if found then
    raise exception 'a schedule has no field %', quote_literal(left(other, 60))
      using errcode = 'LS005', hint = 'See docs/guides/schedules.md for the fields.';
  end if;

  wanted := jsonb_populate_record(null::faultline.schedules, spec - 'args');
  if wanted.name is null or wanted.task is null or num_nonnulls(wanted.cron, wanted.every, wanted.at) <> 1 then
    raise exception 'a schedule has a name, a task, and one of cron, every and at; nothing was written'
      using errcode = 'LS005';
  end if;
  if wanted.time_zone is not null and wanted.cron is null then
    raise exception 'schedule %: a time zone goes with a cron expression; nothing was written', wanted.name
      using errcode = 'LS005', hint = 'A period and a moment are the same in every time zone.';
  end if;
  if wanted.starts_at is not null and wanted.every is null then
    raise exception 'schedule %: starts_at goes with every; nothing was written', wanted.name using errcode = 'LS005';
  end if;
  wanted.starts_at := wanted.starts_at::faultline.moment;
  -- A text is kept as it is written, as the args of a job; an object becomes its text.
  wanted.args := case jsonb_typeof(spec -> 'args') when 'string' then spec ->> 'args'
                      else coalesce(faultline.text_of(spec -> 'args'), '{}') end;
  wanted.queue := coalesce(wanted.queue, 'default');
  wanted.priority := coalesce(wanted.priority, 0);
  wanted.max_attempts := coalesce(wanted.max_attempts, 10);
  wanted.time_zone := case when wanted.cron is not null then coalesce(wanted.time_zone, 'UTC') end;
  wanted.jitter := coalesce(wanted.jitter, interval '0');
  wanted.missed := coalesce(wanted.missed, 'once');
  wanted.overlap := coalesce(wanted.overlap, 'allow');
  return wanted;
end;
$$;
