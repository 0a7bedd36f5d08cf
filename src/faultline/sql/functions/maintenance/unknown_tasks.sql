-- queued -> queued | dead: mark the due jobs whose task no running worker of their queue knows. After a day in which no worker of
-- the queue knew it, the job is dead.
-- Answers their tasks, those that have waited longest first, with the workers that know them in other queues, and those that knew
-- them in this one.
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
  due     record;
  overdue bigint[];
begin
  for due in
    select * from faultline.unknown_due(moment) as found
    order by found.since nulls last
    limit 1000   -- each name may be a typo: so many are looked after at once
  loop
    if not due.unknown then
      -- The day begins anew, unless the only reason is a worker that names no tasks: it may not know this one either.
      update faultline.active as job
      set unknown_since = null
      where job.id = any (due.ids) and job.claim is null and job.unknown_since is not null
        and exists (
          select from faultline.workers as worker
          join faultline.known_tasks as known on known.worker = worker.id
          where worker.stopped_at is null and worker.queues @> array[due.queue] and known.tasks @> array[due.task]);
      update faultline.later as job
      set unknown_since = null
      where job.id = any (due.ids) and job.place is not null and job.unknown_since is not null
        and exists (
          select from faultline.workers as worker
          join faultline.known_tasks as known on known.worker = worker.id
          where worker.stopped_at is null and worker.queues @> array[due.queue] and known.tasks @> array[due.task]);
      continue;
    end if;

    if due.marked < due.jobs then
      update faultline.active as job
      set unknown_since = moment
      from (
        select new.id
        from faultline.active as new
        where new.id = any (due.ids) and new.claim is null and new.unknown_since is null
        limit unknown_tasks.most * 20
        for no key update skip locked
      ) as new
      where job.id = new.id;

      update faultline.later as job
      set unknown_since = moment
      from (
        select new.id
        from faultline.later as new
        where new.id = any (due.ids) and new.place is not null and new.unknown_since is null
        limit unknown_tasks.most * 20
        for no key update skip locked
      ) as new
      where job.id = new.id;
    end if;

    died := 0;
    if due.since < moment - interval '1 day' then
      perform faultline.leave_gates(due.ids, due.queue, due.task, moment, unknown_tasks.most);
      overdue := array(
        select job.id
        from faultline.active as job
        where job.id = any (due.ids) and job.claim is null and job.unknown_since < moment - interval '1 day'
          and job.attempt < job.max_attempts
          and not exists (
            select from faultline.workers as worker
            join faultline.known_tasks as known on known.worker = worker.id
            where worker.queues @> array[due.queue] and worker.seen_at > job.unknown_since
              and known.tasks @> array[due.task])
        order by job.id
        limit unknown_tasks.most
        for no key update of job skip locked);
      died := faultline.bury_unknown(overdue, due.task, moment);
    end if;

    queue := due.queue;
    task := due.task;
    jobs := due.jobs - died;
    seconds := extract(epoch from moment - coalesce(due.since, moment));
    select array_agg(distinct known.name), array_agg(distinct known.queue)
    into elsewhere, other_queues
    from (
      select worker.name, served.queue
      from faultline.workers as worker
      join faultline.known_tasks as known on known.worker = worker.id
      cross join lateral unnest(worker.queues) as served (queue)
      where worker.stopped_at is null and worker.seen_at > moment - interval '1 minute' and known.tasks @> array[due.task]
      order by worker.id, served.queue
      limit 5
    ) as known;
    gone := array(
      select worker.name
      from faultline.workers as worker
      join faultline.known_tasks as known on known.worker = worker.id
      where worker.queues @> array[due.queue] and known.tasks @> array[due.task]
      group by worker.name
      order by max(worker.seen_at) desc
      limit 5);
    elsewhere := coalesce(elsewhere, '{}');
    other_queues := coalesce(other_queues, '{}');
    return next;
  end loop;
end;
$$;
