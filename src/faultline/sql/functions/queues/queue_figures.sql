-- The number of jobs in each state and the lag of each queue, for `metrics` and with its bounds.
create function faultline.queue_figures(moment timestamptz)
returns table (name text, labels text[], value double precision)
language plpgsql
volatile
as $$
#variable_conflict use_column
declare
  queues_max  constant int := 100;
  lanes_max   constant int := 10000;
  rows_max    constant int := 10000;    -- counted in one lane, in `later` and in `dead`
  share       int;                      -- counted in one lane if there are many lanes: all together stay under 200,000
begin
  select least(rows_max, 200000 / greatest(count(*), 1)) into share from (select from faultline.lanes limit lanes_max) as looked_at;

  return query
  with looked_at as materialized (
    select lane.id, lane.queue::text as queue, lane.floor, lane.paused from faultline.lanes as lane order by lane.id limit lanes_max
  ),
  -- The oldest queues keep their names: a name that appears and disappears with the load would break every graph.
  named as materialized (
    select first.queue from (select looked_at.queue, min(looked_at.id) as id from looked_at group by looked_at.queue) as first
    order by first.id
    limit queues_max
  ),
  lane as materialized (
    select looked_at.id, looked_at.floor, looked_at.paused, coalesce(named.queue, 'other') as queue
    from looked_at
    left join named on named.queue = looked_at.queue
  ),
  stands as (
    select lane.queue, counted.due, counted.running, 0 as scheduled, 0 as dead
    from lane
    cross join lateral (
      select count(*) filter (where job.claim is null) as due, count(job.claim) as running
      from (select job.claim from faultline.active as job where job.lane = lane.id order by job.pos limit share) as job
    ) as counted
    union all
    select coalesce(lane.queue, 'other'), 0, 0, 1, 0
    from (select job.lane from faultline.later as job where job.place is null order by job.run_at limit rows_max) as job
    left join lane on lane.id = job.lane
    union all
    select coalesce(lane.queue, 'other'), 1, 0, 0, 0   -- due, and waiting for a slot of its limit
    from (select job.lane from faultline.later as job where job.place is not null order by job.limit_id limit rows_max) as job
    left join lane on lane.id = job.lane
    union all
    select coalesce(lane.queue, 'other'), 0, 0, 0, 1
    from (select job.lane from faultline.dead as job order by job.died_at desc limit rows_max) as job
    left join lane on lane.id = job.lane
  ),
  depth as (
    select stands.queue, sum(stands.due) as due, sum(stands.running) as running, sum(stands.scheduled) as scheduled,
           sum(stands.dead) as dead
    from stands
    group by stands.queue
  ),
  behind as (
    select lane.queue, first.due_at
    from lane
    cross join lateral (
      select coalesce(job.due_at, job.created_at) as due_at
      from faultline.active as job
      where job.lane = lane.id and job.pos >= lane.floor and job.claim is null
      order by job.pos
      limit 1
    ) as first
    where not lane.paused   -- behind on purpose
    union all
    select coalesce(lane.queue, 'other'), job.run_at
    from (
      select job.lane, job.run_at
      from faultline.later as job
      where job.run_at <= queue_figures.moment and job.place is null   -- at a gate it waits on purpose
      order by job.run_at
      limit rows_max
    ) as job
    left join lane on lane.id = job.lane
  )
  select 'queue_jobs', array[depth.queue, state.word], state.many::double precision
  from depth
  cross join lateral (
    values ('due', depth.due), ('running', depth.running), ('scheduled', depth.scheduled), ('dead', depth.dead)) as state (word, many)
  union all
  select 'queue_lag_seconds', array[known.queue],
         coalesce(extract(epoch from queue_figures.moment - min(behind.due_at)), 0)::double precision
  from (select distinct lane.queue from lane) as known
  left join behind on behind.queue = known.queue
  group by known.queue
  union all
  select 'queue_paused', array[lane.queue], bool_and(lane.paused)::int::double precision
  from lane
  where lane.queue <> 'other'
  group by lane.queue
  union all
  select 'queue_jobs_counted_max', '{}', share::double precision;
end;
$$;
