-- The due jobs of tasks that no running worker of their queue knows, by lane and task; and those that wrongly carry the mark.
-- Those that wait at the gate of a limit are among them.
-- Only the first 20,000 of each lane, 200,000 in all, are looked at: jobs that no worker takes come to the front in the end.
-- A queue without a running worker waits, and is not listed; nor is one with a worker that named no tasks: it may know any.
create function faultline.unknown_due(moment timestamptz)
returns table (lane int, queue text, task text, jobs bigint, ids bigint[], marked bigint, since timestamptz, unknown boolean)
language plpgsql
stable
as $$
#variable_conflict use_column
begin
  return query
  with running as materialized (   -- the workers of one app are alike, so they are one row here
    select distinct worker.queues, known.tasks
    from faultline.workers as worker
    left join faultline.known_tasks as known on known.worker = worker.id
    where worker.stopped_at is null
      and worker.seen_at > moment - greatest(interval '1 minute', coalesce(worker.lease_for, interval '0'))
  ),
  front as (
    select lane.id as lane, job.id, job.task, job.unknown_since
    from (
      select lane.id, lane.floor
      from faultline.lanes as lane
      order by random()
    ) as lane
    cross join lateral (
      select job.id, job.task, job.unknown_since
      from faultline.active as job
      where job.lane = lane.id and job.pos >= lane.floor and job.claim is null and job.token < 2305843009213693952
      order by job.pos
      limit 20000
    ) as job
    limit 200000
  ),
  at_gates as (
    select job.lane, job.id, job.task, job.unknown_since
    from faultline.limited_lanes as limited
    cross join lateral (
      select job.lane, job.id, job.task, job.unknown_since
      from faultline.later as job
      where job.limit_id = limited.limit_id and job.lane = limited.lane and job.place is not null
      order by job.gate, job.place
      limit 20000
    ) as job
    limit 200000
  ),
  waiting as (
    select front.lane, front.task, count(*) as jobs, array_agg(front.id) as ids, count(front.unknown_since) as marked,
           min(front.unknown_since) as since
    from (select * from front union all select * from at_gates) as front
    group by front.lane, front.task
  ),
  judged as (
    select waiting.*, lane.queue,
           exists (select from running where running.queues @> array[lane.queue::text])
           and not exists (
             select from running
             where running.queues @> array[lane.queue::text]
               and (running.tasks is null or running.tasks @> array[waiting.task::text])) as unknown
    from waiting
    join faultline.lanes as lane on lane.id = waiting.lane
  )
  select judged.lane, judged.queue::text, judged.task::text, judged.jobs, judged.ids, judged.marked, judged.since, judged.unknown
  from judged
  where judged.unknown or judged.marked > 0;
end;
$$;
