-- queued (at a gate) -> queued (due): admit jobs where no claim came since a slot was freed (by a reap, a cancel, a token, another worker).
-- Only in queues with a running worker, and in lanes in which nothing is free: what is admitted and not claimed holds a slot.
-- Answers the queues that have jobs now, for wake-ups.
create function faultline.sweep_gates(most int default 100)
returns table (queue text, admitted bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment  timestamptz := faultline.now();
  line    record;
begin
  if not exists (select from faultline.limited_lanes) then
    return;
  end if;
  perform faultline.be_durable();
  perform set_config('lock_timeout', '200ms', true);   -- as in reap
  for line in
    select distinct limited.queue
    from faultline.limited_lanes as limited
    join faultline.lanes as lane on lane.id = limited.lane
    cross join lateral (select faultline.known_in(limited.queue, moment) as tasks) as served
    where not lane.paused
      and exists (
        select from faultline.later as job
        where job.limit_id = limited.limit_id and job.lane = limited.lane and job.place is not null)
      and not exists (
        select
        from faultline.active as job
        where job.lane = lane.id and job.pos >= lane.floor and job.claim is null
          and (served.tasks is null or served.tasks ? job.task))   -- one that no worker knows is left there
      and exists (
        select from faultline.workers as worker
        where worker.stopped_at is null and worker.queues @> array[limited.queue::text]
          and worker.seen_at > moment - greatest(interval '1 minute', coalesce(worker.lease_for, interval '0')))
    order by limited.queue
  loop
    queue := line.queue;
    admitted := faultline.admit(array[line.queue::text], sweep_gates.most, faultline.known_in(line.queue::text, moment));
    if admitted > 0 then
      return next;
    end if;
  end loop;
end;
$$;
