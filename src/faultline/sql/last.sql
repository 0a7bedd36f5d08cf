-- The last part of a migration: planner settings for the functions, and no rights for the public.
-- Without statistics the planner chose a bitmap scan and a sort for the claim, which got slower with the queue's history.
do $$
declare
  verb regprocedure;
begin
  for verb in
    select proc.oid::regprocedure
    from pg_catalog.pg_proc as proc
    join pg_catalog.pg_namespace as namespace on namespace.oid = proc.pronamespace
    where namespace.nspname = 'faultline' and proc.prosecdef
  loop
    execute format('alter function %s set plan_cache_mode = force_generic_plan', verb);
    continue when verb::text ~ 'faultline\.(list_jobs|find_jobs|count_jobs|fitting|get_job|history|replay_many|partitions|drop_partitions|list_queues|list_workers|count_dead|doctor|remove_queues|fire)\(';
    execute format('alter function %s set enable_bitmapscan = off', verb);
    execute format('alter function %s set enable_seqscan = off', verb);
    execute format('alter function %s set enable_hashjoin = off', verb);
    execute format('alter function %s set enable_mergejoin = off', verb);
    execute format('alter function %s set jit = off', verb);
  end loop;
end;
$$;

revoke all on schema faultline from public;
revoke all on all tables in schema faultline from public;
revoke all on all sequences in schema faultline from public;
revoke all on all functions in schema faultline from public;

-- Grants survive a migration: first the saved ones, by the name of the object, then those of the group roles, by their duties.
do $$
declare
  given record;
begin
  for given in
    select case kept.kind when 'view' then format('select on faultline.%I', kept.name)
                          else format('execute on function %s', proc.oid::regprocedure) end as what,
           known.rolname as role, kept.is_grantable
    from faultline.granted as kept
    join pg_catalog.pg_roles as known on known.oid = kept.grantee
    left join pg_catalog.pg_proc as proc
      on kept.kind = 'function' and proc.pronamespace = 'faultline'::regnamespace and proc.proname = kept.name
    left join pg_catalog.pg_class as class
      on kept.kind = 'view' and class.relnamespace = 'faultline'::regnamespace and class.relname = kept.name
         and class.relkind = 'v'
    where proc.oid is not null or class.oid is not null
  loop
    execute format('grant %s to %I%s', given.what, given.role, case when given.is_grantable then ' with grant option' end);
  end loop;
  perform faultline.grant_duties();
end;
$$;
drop table faultline.granted;

-- The migration checks the server, so that the first claims do not check it and do not wait for each other. A schema that this
-- transaction created has no lost past: its first job is number 1.
do $$
begin
  if (select first.xmin = pg_current_xact_id()::xid from faultline.migrations as first where first.number = 1) then
    perform setval('faultline.server_mark', faultline.server_mark());
  end if;
  perform faultline.epoch();
end;
$$;
