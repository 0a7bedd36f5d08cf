-- Bring the schedules of an app to those of its code, at the start of a worker.
-- A release lower than the highest that was seen changes nothing. Schedules that are absent from the highest release are paused by a
-- watchdog, once no older release was seen for ten minutes (pause_absent); without releases, they stay.
-- An app belongs to the first role that syncs it and is no operator: another is refused unless it is a member of that role, so that one
-- producer does not pause the schedules of another's app by a release that nothing reaches.
create function faultline.sync_schedules(app faultline.app_name, release bigint[], specs jsonb, worker int default null)
returns table (name text, state text, said text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment   timestamptz := faultline.now();
  ours     faultline.release_numbers;
  highest  bigint[];
  spec     jsonb;
  wanted   faultline.schedules;
  owner    text;
  syncer   text;   -- the role that the app belongs to
begin
  if jsonb_typeof(specs) is distinct from 'array' or jsonb_array_length(specs) > 10000 then
    raise exception 'an app has at most 10000 schedules in its code, as an array' using errcode = 'LS005';
  end if;
  if sync_schedules.app is null then
    raise exception 'an app whose schedules are synced has a name; nothing was changed' using errcode = 'LS005';
  end if;
  if array_ndims(release) > 1 or cardinality(release) > 8 or array_position(release, null) is not null
     or not (0 <= all (release) and 999999999 >= all (release)) then
    raise exception 'a release has at most 8 numbers from 0 to 999999999; nothing was changed' using errcode = 'LS005';
  end if;
  ours := coalesce(sync_schedules.release, '{}');
  perform faultline.be_durable();
  perform faultline.check_server();
  -- Two releases that start together take turns here, and the lower one then changes nothing.
  insert into faultline.app_releases (app, release, synced_at) values (sync_schedules.app, ours, moment) on conflict do nothing;
  select known.release, known.login into highest, syncer from faultline.app_releases as known where known.app = sync_schedules.app for no key update;
  if not faultline.is_operator(session_user) then
    if exists (select from pg_roles as first where first.rolname = syncer and not pg_has_role(session_user, first.oid, 'member')) then
      raise exception 'the schedules of app % are synced by role %, and % is no member of it; nothing was changed',
        sync_schedules.app, syncer, session_user
        using errcode = '42501', hint = format('Name the app otherwise, or have an operator: grant %I to %I.', syncer, session_user);
    end if;
    if syncer is null or not exists (select from pg_roles as first where first.rolname = syncer) then
      syncer := session_user;
    end if;
  end if;
  insert into faultline.worker_releases as known (worker, app, release)
  select listed.id, sync_schedules.app, ours from faultline.workers as listed where listed.id = sync_schedules.worker
  on conflict on constraint worker_releases_pkey do update set app = excluded.app, release = excluded.release;
  if ours < highest then
    return query select null::text, 'older', array_to_string(highest, '.');
    return;
  end if;
  update faultline.app_releases as known set release = ours, synced_at = moment, login = syncer where known.app = sync_schedules.app;

  -- In the order of the names, so that two apps that start together do not deadlock.
  for spec in select given.value from jsonb_array_elements(specs) as given (value) order by given.value ->> 'name' loop
    name := left(spec ->> 'name', 128);
    said := null;
    begin
      wanted := faultline.wanted_schedule(spec);
      wanted.app := sync_schedules.app;
      wanted.release := ours;
      select coalesce(row.app, '') into owner from faultline.schedules as row where row.name = wanted.name;
      if found and owner <> sync_schedules.app then
        state := 'foreign';
        said := owner;
      else
        state := faultline.write_schedule(wanted, moment);
      end if;
    exception when others then   -- one that cannot be written does not stop the others
      state := 'refused';
      said := sqlerrm;
    end;
    return next;
  end loop;
end;
$$;
