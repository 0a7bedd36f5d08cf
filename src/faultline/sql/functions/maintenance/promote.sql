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
    select job.id
    from faultline.later as job
    where job.run_at <= moment and job.place is null and job.limit_id is null
    order by job.run_at
    limit promote.most
    for update skip locked
  ),
  taken as (
    delete from faultline.later as job
    using due
    where job.id = due.id
    returning job.*
  ),
  lined_up as (
    insert into faultline.active (id, pos, due_at, job_columns)
    select taken.id, nextval('faultline.places'), taken.run_at, taken.job_columns
    from taken
    returning lane
  )
  select lane.queue::text, count(*)
  from lined_up
  join faultline.lanes as lane on lane.id = lined_up.lane
  group by lane.queue;

  if faultline.uses_limits() then
    return query select * from faultline.promote_to_gates(promote.most, moment);
  end if;
end;
$$;
