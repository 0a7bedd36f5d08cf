-- Drop all functions and views before a migration creates them again, so that no old signature stays: a call would
-- silently use it. `now` and two others go last, because views use them.

-- Grants on them are saved here; last.sql grants them again on the new objects of the same name.
create table faultline.granted as
select 'function' as kind, proc.proname as name, given.grantee, given.is_grantable
from pg_catalog.pg_proc as proc
cross join lateral pg_catalog.aclexplode(proc.proacl) as given
where proc.pronamespace = 'faultline'::regnamespace and given.grantee not in (0, proc.proowner)
union all
select 'view', class.relname, given.grantee, given.is_grantable
from pg_catalog.pg_class as class
cross join lateral pg_catalog.aclexplode(class.relacl) as given
where class.relnamespace = 'faultline'::regnamespace and class.relkind = 'v' and given.privilege_type = 'SELECT'
  and given.grantee not in (0, class.relowner);

do $$
declare
  old regprocedure;
  pic regclass;
begin
  for old in
    select proc.oid::regprocedure
    from pg_catalog.pg_proc as proc
    join pg_catalog.pg_namespace as namespace on namespace.oid = proc.pronamespace
    where namespace.nspname = 'faultline' and proc.proname not in ('now', 'readable', 'damage')
  loop
    execute format('drop function %s', old);
  end loop;

  for pic in
    select class.oid::regclass
    from pg_catalog.pg_class as class
    join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
    where namespace.nspname = 'faultline' and class.relkind = 'v'
    order by class.oid desc   -- newest first: a view may use an older one
  loop
    execute format('drop view %s', pic);
  end loop;

  drop function if exists faultline.now();
  drop function if exists faultline.damage(text, text, text, timestamptz, timestamptz, timestamptz[]);
  drop function if exists faultline.readable(text);
end;
$$;
