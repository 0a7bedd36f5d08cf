-- Run before the functions and views are made anew: everything of ours that has no data goes, so that no old
-- signature is left behind (it would not fail, it would silently win). `now` goes last: a view stands on it.
do $$
declare
  old regprocedure;
  pic regclass;
begin
  for old in
    select proc.oid::regprocedure
    from pg_catalog.pg_proc as proc
    join pg_catalog.pg_namespace as namespace on namespace.oid = proc.pronamespace
    where namespace.nspname = 'faultline' and proc.proname <> 'now'
  loop
    execute format('drop function %s', old);
  end loop;

  for pic in
    select class.oid::regclass
    from pg_catalog.pg_class as class
    join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
    where namespace.nspname = 'faultline' and class.relkind = 'v'
  loop
    execute format('drop view %s', pic);
  end loop;

  drop function if exists faultline.now();
end;
$$;
