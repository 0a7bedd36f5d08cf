-- Grant every group role the rights of its duty, and revoke all others.
-- It runs after each migration and when roles are made, with the rights of the caller, which must own the schema.
create function faultline.grant_duties()
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  member   record;
  granted  record;
begin
  for member in
    select named.duty, named.role
    from faultline.groups as named
    join pg_roles as known on known.rolname = named.role
    where named.duty not in ('owner', 'migrator')
  loop
    execute format('revoke all on all functions in schema faultline from %I', member.role);
    execute format('revoke all on all tables in schema faultline from %I', member.role);
    execute format('revoke all on all sequences in schema faultline from %I', member.role);
    execute format('grant usage on schema faultline to %I', member.role);
    for granted in
      select 'execute on function ' || proc.oid::regprocedure::text as what
      from faultline.role_grants() as list
      join pg_proc as proc
        on proc.pronamespace = 'faultline'::regnamespace and proc.proname = list.object
      where list.duty = member.duty and list.kind = 'function'
      union all
      select format('select on faultline.%I', list.object)
      from faultline.role_grants() as list
      where list.duty = member.duty and list.kind = 'view'
    loop
      execute format('grant %s to %I', granted.what, member.role);
    end loop;
  end loop;
end;
$$;
