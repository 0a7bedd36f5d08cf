-- The facts that `faultline doctor` judges: durability, clock, old transactions, and rows in the wrong place.
-- It waits 5 s for a lock: a table that stays locked is a finding too.
create function faultline.doctor()
returns table (
  version text, fsync text, synchronous_commit text, full_page_writes text, backend_pid int, moment timestamptz,
  oldest_transaction_seconds double precision, round_age_seconds double precision, ledger_strays bigint,
  jobs_in_two_places bigint, jobs_behind_the_floor bigint, silent_workers bigint,
  chores_age_seconds double precision, leader text, unknown_jobs bigint, unknown_tasks text[],
  failing_schedules bigint, failing_names text[], late_schedules bigint, late_names text[])
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = 5000
as $$
#variable_conflict use_column
begin
  return query
  select current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
         current_setting('full_page_writes'), pg_backend_pid(), clock_timestamp(),
         -- Null when this role cannot see the transactions of others: 0 would mean that there are none.
         case when pg_has_role(current_user, 'pg_read_all_stats', 'usage') then (
           select coalesce(max(extract(epoch from clock_timestamp() - session.xact_start)), 0)::double precision
           from pg_stat_activity as session
           where session.pid <> pg_backend_pid() and session.backend_type = 'client backend'
         ) end,
         (select vital.round_age_seconds from faultline.health() as vital),
         (select count(*) from faultline.ledger_default),
         faultline.jobs_in_two_places(),
         (
           select count(*)
           from faultline.active as job
           join faultline.lanes as lane on lane.id = job.lane
           where job.pos < lane.floor and job.claim is null
         ),
         (select count(*) from faultline.list_workers(most => 10000) as known where known.silent),
         (select vital.chores_age_seconds from faultline.health() as vital),
         (
           select coalesce(known.name, last.leader::text)
           from faultline.rounds as last
           left join faultline.workers as known on known.id = last.leader
           where last.leads_until > faultline.now()
         ),
         coalesce(unknown.jobs, 0), coalesce(unknown.tasks, '{}'),
         trouble.failing, trouble.failing_names, trouble.late, trouble.late_names
  from (
    select sum(due.jobs)::bigint as jobs, (array_agg(distinct format('%s in %s', due.task, due.queue)))[1:10] as tasks
    from faultline.unknown_due(faultline.now()) as due
    where due.unknown
  ) as unknown
  cross join faultline.schedule_troubles() as trouble;
end;
$$;
