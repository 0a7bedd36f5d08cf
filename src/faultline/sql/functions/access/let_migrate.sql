-- Let the members of a role become the owner of the schema, which a migration needs.
-- Not if the owner is a superuser: they would become one too.
create function faultline.let_migrate(migrator text, owner text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  execute format('grant usage on schema faultline to %I', let_migrate.migrator);
  if not (select known.rolsuper from pg_roles as known where known.rolname = let_migrate.owner)
     and not exists (
       select from pg_auth_members as tie
       join pg_roles as held on held.oid = tie.roleid
       join pg_roles as holder on holder.oid = tie.member
       where held.rolname = let_migrate.owner and holder.rolname = let_migrate.migrator)
  then
    begin
      execute format('grant %I to %I', let_migrate.owner, let_migrate.migrator);
    exception when insufficient_privilege then
      null;   -- from 16 on a role cannot grant itself: a login that owns the schema goes on migrating as that login
    end;
  end if;
end;
$$;
