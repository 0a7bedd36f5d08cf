-- Every table, view and sequence, and the schema itself: the owner, and the grants to other roles on it or on a column of it.
select kept.kind, kept.name, pg_get_userbyid(kept.owner),
       array(
         select case given.grantee when 0 then 'PUBLIC' else pg_get_userbyid(given.grantee)::text end || ' ' || lower(given.privilege_type)
         from aclexplode(kept.acl) as given
         where given.grantee <> kept.owner)
from (
  select case class.relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end as kind, class.relname as name,
         class.relowner as owner, class.relacl as acl
  from pg_class as class
  where class.relnamespace = to_regnamespace('faultline') and class.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
  union all
  select 'column', class.relname || '.' || attribute.attname, class.relowner, attribute.attacl
  from pg_class as class
  join pg_attribute as attribute on attribute.attrelid = class.oid
  where class.relnamespace = to_regnamespace('faultline') and attribute.attacl is not null
  union all
  select 'schema', home.nspname, home.nspowner, home.nspacl
  from pg_namespace as home
  where home.nspname = 'faultline'
  union all
  -- Default privileges apply by themselves to what the owner makes later, such as the ledger's next range.
  select 'future ' || case rule.defaclobjtype when 'r' then 'tables' when 'S' then 'sequences' else 'functions' end, 'faultline',
         rule.defaclrole, rule.defaclacl
  from pg_default_acl as rule
  join pg_namespace as home on home.nspname = 'faultline' and home.nspowner = rule.defaclrole
  where rule.defaclobjtype in ('r', 'S', 'f') and rule.defaclnamespace in (0, home.oid)
) as kept
order by 1, 2
