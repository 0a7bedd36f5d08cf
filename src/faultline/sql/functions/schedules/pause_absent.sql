-- Pause the schedules that the highest release of their app does not have, once no older release was seen for ten minutes.
-- In a rolling deploy both releases run: until the last worker of the older one is gone, its schedules go on.
create function faultline.pause_absent()
returns table (name text, app text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz := faultline.now();
begin
  return query
  update faultline.schedules as row
  set paused_at = moment, paused_by = 'release', changed_at = moment, revision = nextval('faultline.schedule_revisions')
  from (
    select absent.name
    from faultline.app_releases as highest
    join faultline.schedules as absent on absent.app = highest.app and absent.release < highest.release
    where absent.paused_at is null and absent.ended_at is null
      and not exists (
        select from faultline.worker_releases as older
        join faultline.workers as worker on worker.id = older.worker
        where older.app = highest.app and older.release < highest.release and worker.seen_at > moment - interval '10 minutes')
    for no key update of absent skip locked
  ) as absent
  where row.name = absent.name
  returning row.name::text, row.app::text;
end;
$$;
