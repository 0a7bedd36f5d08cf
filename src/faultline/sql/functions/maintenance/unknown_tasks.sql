-- queued -> queued | dead: mark the due jobs whose task no running worker of their queue knows. After a day in which no worker of
-- the queue knew it, the job is dead.
-- Answers the marked tasks, those that have waited longest first, with the workers that know them in other queues, and those that
-- knew them in this one.
create function faultline.unknown_tasks(most int default 500)
returns table (
  queue text, task text, jobs bigint, seconds double precision, died bigint,
  elsewhere text[], other_queues text[], gone text[])
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment  timestamptz := faultline.now();
  lanes   int[];
  names   text[];
  overdue bigint[];
  buried  text[];
begin
  -- A worker that knows the task runs again: the day begins anew.
  select array_agg(due.lane), array_agg(due.task) into lanes, names
  from faultline.unknown_due(moment) as due
  where not due.unknown;
  if lanes is not null then
    update faultline.active as job
    set unknown_since = null
    from unnest(lanes, names) as pair (lane, task)
    where job.lane = pair.lane and job.task = pair.task and job.claim is null and job.unknown_since is not null
      -- While some other worker of the queue runs that names no tasks, the mark stays: it may know none of them.
      and exists (
        select from faultline.workers as worker
        join faultline.known_tasks as known on known.worker = worker.id
        join faultline.lanes as lane on lane.id = pair.lane
        where worker.stopped_at is null and worker.queues @> array[lane.queue::text] and known.tasks @> array[pair.task]);
  end if;

  select array_agg(due.lane), array_agg(due.task) into lanes, names
  from (
    select due.lane, due.task
    from faultline.unknown_due(moment) as due
    where due.unknown
    order by due.since nulls last
    limit 1000   -- each name may be a typo: so many are looked after at once
  ) as due;
  if lanes is null then
    return;
  end if;

  update faultline.active as job
  set unknown_since = moment
  from (
    select waiting.id
    from faultline.active as waiting
    join unnest(lanes, names) as pair (lane, task) on waiting.lane = pair.lane and waiting.task = pair.task
    where waiting.claim is null and waiting.unknown_since is null
    limit unknown_tasks.most * 20
    for no key update of waiting skip locked
  ) as new
  where job.id = new.id;

  -- A day under the mark, and no worker that knew the task was seen in the queue since.
  overdue := array(
    select job.id
    from faultline.active as job
    join unnest(lanes, names) as pair (lane, task) on job.lane = pair.lane and job.task = pair.task
    join faultline.lanes as lane on lane.id = job.lane
    where job.claim is null and job.unknown_since < moment - interval '1 day'
      and job.attempt < job.max_attempts
      and not exists (
        select from faultline.workers as worker
        join faultline.known_tasks as known on known.worker = worker.id
        where worker.queues @> array[lane.queue::text] and worker.seen_at > job.unknown_since
          and known.tasks @> array[pair.task])
    order by job.id
    limit unknown_tasks.most
    for no key update of job skip locked);

  if cardinality(overdue) > 0 then
    perform faultline.be_durable();
    -- Under a lease of its own, as if a worker had claimed and buried it: the ledger has one entry for each lease.
    update faultline.active as job
    set token = greatest(drawn.number, job.token + 1), claim = gen_random_uuid(), claimed_at = moment, claimed_by = null,
        deadline_at = moment + interval '1 minute', lease_until = moment + interval '1 minute', attempt = job.attempt + 1
    from (select faultline.epoch() + nextval('faultline.tokens') as number) as drawn
    where job.id = any (overdue);

    select array_agg(format('%s/%s', ended.queue, ended.task)) into buried
    from (select distinct listed.name from unnest(names) as listed (name)) as each
    cross join lateral faultline.put_back(
      array(select job.id from faultline.active as job where job.id = any (overdue) and job.task = each.name), 'dead',
      format('no worker knew the task %s for a day', each.name), moment,
      dead_reason => format('no worker knew the task %s for a day', each.name)) as ended;
  end if;

  return query
  select told.queue::text, told.task, told.jobs, extract(epoch from moment - told.since)::double precision, told.died,
         array(
           select distinct worker.name
           from faultline.workers as worker
           join faultline.known_tasks as known on known.worker = worker.id
           where worker.stopped_at is null and worker.seen_at > moment - interval '1 minute' and known.tasks @> array[told.task]
           order by worker.name limit 5),
         array(
           select distinct served.queue
           from faultline.workers as worker
           join faultline.known_tasks as known on known.worker = worker.id
           cross join lateral unnest(worker.queues) as served (queue)
           where worker.stopped_at is null and worker.seen_at > moment - interval '1 minute' and known.tasks @> array[told.task]
           order by served.queue limit 5),
         array(
           select worker.name
           from faultline.workers as worker
           join faultline.known_tasks as known on known.worker = worker.id
           where worker.queues @> array[told.queue::text] and known.tasks @> array[told.task]
           group by worker.name order by max(worker.seen_at) desc limit 5)
  from (
    select lane.queue, pair.task, count(job.id) as jobs, coalesce(min(job.unknown_since), moment) as since,
           (select count(*) from unnest(buried) as one (name) where one.name = format('%s/%s', lane.queue, pair.task)) as died
    from unnest(lanes, names) as pair (lane, task)
    join faultline.lanes as lane on lane.id = pair.lane
    left join faultline.active as job on job.lane = pair.lane and job.task = pair.task and job.claim is null
    group by pair.lane, lane.queue, pair.task
    order by since
    limit 100
  ) as told;
end;
$$;
