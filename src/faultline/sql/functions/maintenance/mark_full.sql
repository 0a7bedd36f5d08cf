-- Mark the lanes of queues that hold as many due jobs as they may, and clear the marks of the others; enqueues read them.
-- Counted here and not by each enqueue: to count 10,000 jobs takes a millisecond. So more may come until the next round.
create function faultline.mark_full()
returns int
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  changed int;
begin
  with bounded as materialized (
    select owner.name, owner.max_depth, (
      select count(*)
      from (
        select
        from faultline.lanes as lane
        cross join lateral (
          select
          from faultline.active as job
          where job.lane = lane.id and job.pos >= lane.floor and job.claim is null
          order by job.pos
          limit owner.max_depth
        ) as free
        where lane.queue = owner.name
        union all
        select
        from faultline.limited_lanes as limited
        cross join lateral (
          select
          from faultline.later as job
          where job.limit_id = limited.limit_id and job.lane = limited.lane and job.place is not null   -- due, and at its gate
          limit owner.max_depth
        ) as free
        where limited.queue = owner.name
        limit owner.max_depth
      ) as counted
    ) as due
    from faultline.queues as owner
    where owner.max_depth is not null
  ),
  wrong as materialized (
    select lane.id, bounded.due >= bounded.max_depth as is_full
    from bounded
    join faultline.lanes as lane on lane.queue = bounded.name
    where lane.is_full <> (bounded.due >= bounded.max_depth)
    for no key update of lane skip locked
  )
  update faultline.lanes as lane
  set is_full = wrong.is_full
  from wrong
  where lane.id = wrong.id;
  get diagnostics changed = row_count;
  return changed;
end;
$$;
