-- (nothing) -> queued: a job for each past occurrence that has none, at once; a preview says for which, and does nothing.
-- The occurrences are those of this revision of the schedule: if it has changed since they were computed, nothing is done.
create function faultline.backfill(
  name text, revision bigint, occurrences jsonb, preview boolean default false, reason text default null)
returns table (at timestamptz, job_id bigint, is_new boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment  timestamptz := faultline.now();
  held    faultline.schedules;
  made    bigint[];
  asked   timestamptz[];
begin
  if jsonb_typeof(occurrences) is distinct from 'array' then
    raise exception 'the occurrences of a backfill are an array of times; nothing was enqueued' using errcode = 'LS005';
  end if;
  if jsonb_array_length(occurrences) > 1000 then
    raise exception 'a backfill makes at most 1000 jobs at once; this one has % occurrences', jsonb_array_length(occurrences)
      using errcode = 'LS005', hint = 'Take a shorter range, and then the next.';
  end if;
  begin
    asked := array(
      select distinct given.at::timestamptz::faultline.moment::timestamptz
      from jsonb_array_elements_text(occurrences) as given (at) order by 1);
  exception when data_exception or check_violation then
    raise exception 'an occurrence of a backfill is a time in the years 2000 to 2199; nothing was enqueued: %', sqlerrm
      using errcode = 'LS005';
  end;
  perform faultline.be_durable();
  perform faultline.check_server();
  held := faultline.lock_schedule(backfill.name);
  if held.revision <> backfill.revision then
    raise exception 'schedule % has changed meanwhile; nothing was enqueued', held.name
      using errcode = 'LS004', hint = 'Look at the preview again.';
  end if;
  if exists (select from unnest(asked) as given (at) where given.at is null or not given.at < least(moment, held.next_at)) then
    raise exception 'a backfill of schedule % is for times that have passed; nothing was enqueued', held.name
      using errcode = 'LS005', hint = 'What is to come, the schedule enqueues itself.';
  end if;

  if not backfill.preview then
    made := array(select one.job_id from faultline.enqueue_occurrences(held, asked, 'backfilled', moment) as one);
    perform faultline.note_act('backfill', queue => held.queue, reason => backfill.reason, detail => jsonb_build_object(
      'schedule', held.name, 'jobs', cardinality(made),
      'since', (select min(given.at) from unnest(asked) as given (at)),
      'until', (select max(given.at) from unnest(asked) as given (at))));
  end if;
  return query
  select given.at, noted.job_id, case when backfill.preview then noted.at is null else coalesce(noted.job_id = any (made), false) end
  from unnest(asked) as given (at)
  left join faultline.occurrences as noted on noted.schedule = held.name and noted.at = given.at
  order by given.at;
end;
$$;
