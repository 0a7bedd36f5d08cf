-- The tasks that the running workers of a queue know, as keys of an object; null if one of them may know any.
create function faultline.known_in(queue text, moment timestamptz)
returns jsonb
language sql
stable
as $$
  select case when bool_or(named.tasks is null) then null
              else coalesce(jsonb_object_agg(each.name, 1) filter (where each.name is not null), '{}') end
  from (
    select distinct known.tasks
    from faultline.workers as worker
    left join faultline.known_tasks as known on known.worker = worker.id
    where worker.stopped_at is null and worker.queues @> array[known_in.queue]
      and worker.seen_at > known_in.moment - greatest(interval '1 minute', coalesce(worker.lease_for, interval '0'))
  ) as named
  left join lateral unnest(named.tasks) as each (name) on true
$$;
