-- Create a group role for each duty and grant it what the duty needs; safe to repeat.
-- The roles cannot log in. With `own`, a separate role owns the tables and functions, and only migrators can become it. If the
-- caller can grant that, the owner may see the age of other roles' transactions: doctor and metrics run with its rights.
-- It runs with the rights of the caller, which must own the schema and have the right to create roles.
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
      -- A migrator does not inherit: it has the owner's rights only after `set role`.
      execute format('create role %I nologin %s', made, case when kind = 'migrator' then 'noinherit' else 'inherit' end);
      return next made;
    end if;
    insert into faultline.groups (duty, role) values (kind, made)
    on conflict (duty) do update set role = excluded.role;
  end loop;

  if own and owner <> make_roles.prefix || 'owner' then
    perform faultline.transfer_ownership(make_roles.prefix || 'owner');
    owner := make_roles.prefix || 'owner';
  end if;
  if owner = make_roles.prefix || 'owner' and not pg_has_role(owner, 'pg_read_all_stats', 'usage') then
    begin
      execute format('grant pg_read_all_stats to %I', owner);
    exception when insufficient_privilege then
      null;   -- doctor reports what it cannot see, and how to grant it
    end;
  end if;
  perform faultline.grant_duties();
  perform faultline.let_migrate(make_roles.prefix || 'migrator', owner);
  perform faultline.note_act('make_roles', detail => jsonb_build_object('prefix', make_roles.prefix, 'own', make_roles.own));
  if own then
    perform faultline.leave_owner_role(owner);
  end if;
end;
$$;
