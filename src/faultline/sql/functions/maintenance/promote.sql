-- queued for later -> queued now: move due jobs to the end of their lanes, and limited ones to their gates.
create function faultline.promote(most int default 500)
returns table (queue text, moved bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz := faultline.now();
begin
  perform faultline.be_durable();
  return query
  with due as materialized (
    select job.id, job.limit_id
    from faultline.later as job
    where job.run_at <= moment and job.place is null
    order by job.run_at
    limit promote.most
    for update skip locked
  ),
  taken as (
    delete from faultline.later as job
    using due
    where job.id = due.id and due.limit_id is null
    returning job.*
  ),
  at_gate as (
    update faultline.later as job
    set place = faultline.place_at_gate(job.limit_id, job.id), holds = null
    from due
    where job.id = due.id and due.limit_id is not null
    returning job.lane
  ),
  lined_up as (
    insert into faultline.active (id, pos, due_at, job_columns)
    select taken.id, nextval('faultline.places'), taken.run_at, taken.job_columns
    from taken
    returning lane
  )
  select lane.queue::text, count(*)
  from (select lined_up.lane from lined_up union all select at_gate.lane from at_gate) as moved
  join faultline.lanes as lane on lane.id = moved.lane
  group by lane.queue;
end;
$$;
