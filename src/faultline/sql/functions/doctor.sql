-- The facts `faultline doctor` judges: the server's durability, its clock, who holds it back, and rows out of place.
create function faultline.doctor()
returns table (
  version text, fsync text, synchronous_commit text, full_page_writes text, backend_pid int, moment timestamptz,
  oldest_transaction_seconds double precision, round_age_seconds double precision, ledger_strays bigint,
  jobs_in_two_places bigint, jobs_behind_the_floor bigint, silent_workers bigint,
  chores_age_seconds double precision, leader text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  return query
  select current_setting('server_version'), current_setting('fsync'), current_setting('synchronous_commit'),
         current_setting('full_page_writes'), pg_backend_pid(), clock_timestamp(),
         (
           select max(extract(epoch from clock_timestamp() - session.xact_start))::double precision
           from pg_stat_activity as session
           where session.pid <> pg_backend_pid() and session.backend_type = 'client backend'
         ),
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
         );
end;
$$;
