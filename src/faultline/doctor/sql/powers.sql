-- The owner and the group roles: their attributes, and the roles of which they are members.
select known.rolname,
       array_remove(array[
         case when known.rolcanlogin then 'login' end, case when known.rolsuper then 'superuser' end,
         case when known.rolcreaterole then 'createrole' end, case when known.rolbypassrls then 'bypassrls' end,
         case when known.rolreplication then 'replication' end], null),
       array(
         select pg_get_userbyid(tie.roleid) from pg_auth_members as tie where tie.member = known.oid order by 1)
from pg_roles as known
where known.rolname = any (%(roles)s)
