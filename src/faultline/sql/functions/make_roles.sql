-- Make a group role for each duty, none of which can log in, and grant it what the duty needs. Safe to repeat.
-- With `own`, tables and functions go to a role of their own too, which only migrators can become.
-- Runs as whoever calls it, who must own the schema and may make roles.
create function faultline.make_roles(prefix text default 'faultline_', own boolean default false)
returns setof text
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  owner  text := (select pg_get_userbyid(home.nspowner) from pg_namespace as home where home.nspname = 'faultline');
  made   text;
  kind   text;
begin
  if coalesce(make_roles.prefix, '') !~ '^(?!pg_)[a-z][a-z0-9_]{0,39}$' then
    raise exception 'a prefix of roles is a lowercase letter, then up to 39 letters, digits and underscores'
      using errcode = 'LS005';
  end if;
  perform faultline.be_durable();
  foreach kind in array
    array['producer', 'worker', 'watchdog', 'operator', 'reader', 'server', 'migrator'] || case when own then '{owner}'::text[] end
  loop
    made := make_roles.prefix || kind;
    if not exists (select from pg_roles as known where known.rolname = made) then
      -- A migrator does not inherit: it has the owner's rights only once it says `set role`.
      execute format('create role %I nologin %s', made, case when kind = 'migrator' then 'noinherit' else 'inherit' end);
      return next made;
    end if;
    insert into faultline.groups (duty, role) values (kind, made)
    on conflict (duty) do update set role = excluded.role;
  end loop;

  if own and owner <> make_roles.prefix || 'owner' then
    perform faultline.give_away(make_roles.prefix || 'owner');
    owner := make_roles.prefix || 'owner';
  end if;
  perform faultline.grant_duties();
  perform faultline.let_migrate(make_roles.prefix || 'migrator', owner);
  perform faultline.note_act('make_roles', detail => jsonb_build_object('prefix', make_roles.prefix, 'own', make_roles.own));
  if own then
    perform faultline.let_go(owner);
  end if;
end;
$$;
