-- Logins that reach the tables without the verbs: they inherit a role that may, or can become one (`set role`).
-- Superusers can do anything and are not listed.
with able as (
  select role.oid, role.rolname, 'the tables' as what
  from pg_roles as role
  where not role.rolsuper
    and exists (
      select from pg_class as class
      where class.relnamespace = to_regnamespace('faultline') and class.relkind in ('r', 'p')
        and class.relowner <> role.oid and not pg_has_role(role.oid, class.relowner, 'usage')
        and has_table_privilege(role.oid, class.oid, 'select, insert, update, delete, truncate'))
  union all
  select owner.oid, owner.rolname, 'everything, as the owner'
  from pg_namespace as home
  join pg_roles as owner on owner.oid = home.nspowner
  where home.nspname = 'faultline' and not owner.rolsuper
)
select login.rolname, able.rolname, able.what, pg_has_role(login.oid, able.oid, 'usage') as inherits,
       coalesce(pg_has_role(login.oid, (select role.oid from pg_roles as role where role.rolname = %(migrator)s), 'member'), false) as migrates
from able
join pg_roles as login
  on login.rolcanlogin and not login.rolsuper and login.oid <> able.oid and pg_has_role(login.oid, able.oid, 'member')
order by 1, 2
