-- queued for later -> queued now: due jobs with a limit wait at their gates from here on; only a claim admits them.
create function faultline.promote_to_gates(most int, moment timestamptz)
returns table (queue text, moved bigint)
language plpgsql
volatile
as $$
#variable_conflict use_column
begin
  return query
  with due as materialized (
    select job.id
    from faultline.later as job
    where job.run_at <= promote_to_gates.moment and job.place is null and job.limit_id is not null
    order by job.run_at
    limit promote_to_gates.most
    for update skip locked
  ),
  at_gate as (
    update faultline.later as job
    set place = faultline.place_at_gate(job.limit_id, job.id), holds = null
    from due
    where job.id = due.id
    returning job.lane
  )
  select lane.queue::text, count(*)
  from at_gate
  join faultline.lanes as lane on lane.id = at_gate.lane
  group by lane.queue;
end;
$$;
