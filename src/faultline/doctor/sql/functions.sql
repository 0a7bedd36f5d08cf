-- Every function in the schema: its owner, whether it runs as its owner, its settings and its callers.
select proc.proname, pg_get_userbyid(proc.proowner), proc.prosecdef, coalesce(proc.proconfig, '{}'), proc.prosrc,
       array(
         select case given.grantee when 0 then 'PUBLIC' else pg_get_userbyid(given.grantee)::text end
         from aclexplode(coalesce(proc.proacl, acldefault('f', proc.proowner))) as given
         where given.grantee <> proc.proowner)
from pg_proc as proc
where proc.pronamespace = to_regnamespace('faultline')
order by proc.oid::regprocedure::text
