-- Run last, in the migrating transaction: planner settings for the verbs, and nothing for the public.
-- Without statistics the planner chose a bitmap scan and a sort for the claim, and it slowed down with the queue's history.
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
    continue when verb::text ~ 'faultline\.(list_jobs|find_jobs|count_jobs|get_job|history|replay_many|partitions|drop_partitions|list_queues|list_workers|count_dead|doctor)\(';
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

-- Whoever migrates has looked at the server: the first claims then need not, and do not wait for one another.
do $$ begin perform faultline.epoch(); end $$;
