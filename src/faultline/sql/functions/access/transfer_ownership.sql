-- Hand the schema and everything in it to another role.
create function faultline.transfer_ownership(owner text)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  thing record;
begin
  if not (select known.rolsuper from pg_roles as known where known.rolname = current_user) then
    -- For this transaction only: a role can give objects only to a role that it can become.
    execute format('grant %I to %I', transfer_ownership.owner, current_user);
    execute format('grant create on schema faultline to %I', transfer_ownership.owner);
  end if;

  for thing in
    select format('%s %s', case class.relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end,
                  class.oid::regclass) as named
    from pg_class as class
    where class.relnamespace = 'faultline'::regnamespace and class.relkind in ('r', 'p', 'v', 'S')
      -- A sequence of an identity column goes with its table.
      and not exists (
        select from pg_depend as tie
        where tie.classid = 'pg_class'::regclass and tie.objid = class.oid and tie.deptype = 'i' and class.relkind = 'S')
    union all
    select format('function %s', proc.oid::regprocedure)
    from pg_proc as proc where proc.pronamespace = 'faultline'::regnamespace
    union all
    select format('%s %s', case kind.typtype when 'd' then 'domain' else 'type' end, kind.oid::regtype)
    from pg_type as kind where kind.typnamespace = 'faultline'::regnamespace and kind.typtype in ('d', 'e')
  loop
    execute format('alter %s owner to %I', thing.named, transfer_ownership.owner);
  end loop;
  -- Migrators no longer need the right to become the old owner.
  for thing in
    select held.rolname as was, holder.rolname as holder
    from pg_auth_members as tie
    join pg_namespace as home on home.nspname = 'faultline' and home.nspowner = tie.roleid
    join pg_roles as held on held.oid = tie.roleid
    join pg_roles as holder on holder.oid = tie.member
    join faultline.groups as named on named.role = holder.rolname and named.duty = 'migrator'
    where held.rolname <> transfer_ownership.owner
  loop
    execute format('revoke %I from %I', thing.was, thing.holder);
  end loop;
  execute format('alter schema faultline owner to %I', transfer_ownership.owner);
  execute format('alter default privileges for role %I revoke execute on functions from public', transfer_ownership.owner);
end;
$$;
