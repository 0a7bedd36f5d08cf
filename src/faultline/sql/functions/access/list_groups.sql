-- The group roles, and the logins that can use each of them, directly or through other roles.
create function faultline.list_groups()
returns table (duty text, role text, is_there boolean, logins text[])
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select named.duty, named.role::text, known.oid is not null,
         array(
           select login.rolname::text
           from pg_roles as login
           where login.rolcanlogin and not login.rolsuper and pg_has_role(login.oid, known.oid, 'member')
           order by login.rolname)
  from faultline.groups as named
  left join pg_roles as known on known.rolname = named.role
  order by named.duty;
end;
$$;
