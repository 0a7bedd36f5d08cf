-- queued (at a gate) -> queued (due): for jobs that the caller buries in this transaction, since no worker knew their task for a day.
-- They take no slot: no other transaction sees them due.
create function faultline.leave_gates(ids bigint[], queue text, task text, moment timestamptz, most int)
returns void
language sql
volatile
as $$
  with overdue as materialized (
    select job.id
    from faultline.later as job
    where job.id = any (leave_gates.ids) and job.place is not null
      and job.unknown_since < leave_gates.moment - interval '1 day' and job.attempt < job.max_attempts
      and not exists (
        select from faultline.workers as worker
        join faultline.known_tasks as known on known.worker = worker.id
        where worker.queues @> array[leave_gates.queue] and worker.seen_at > job.unknown_since
          and known.tasks @> array[leave_gates.task])
    limit leave_gates.most
    for update of job skip locked
  ),
  taken as (
    delete from faultline.later as job
    using overdue
    where job.id = overdue.id
    returning job.*
  )
  insert into faultline.active (id, pos, due_at, job_columns)
  select taken.id, nextval('faultline.places'), taken.run_at, taken.job_columns
  from taken
$$;
