-- The workers, newest first; silent ones after them, and with `gone`, stopped ones too.
-- Silent means no heartbeat for a whole default lease. With `only_queues`, the workers that serve one of them; each row then has only
-- these queues and the jobs that it runs there, and no tasks: they may be of other queues.
create function faultline.list_workers(gone boolean default false, most int default 100, only_queues text[] default null)
returns table (
  id int, name text, host text, pid int, queues text[], jobs_max int, version text, started_at timestamptz,
  seen_at timestamptz, stopped_at timestamptz, running bigint, silent boolean,
  tasks text[])
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment timestamptz := faultline.now();
begin
  return query
  select known.id, known.name, known.host, known.pid,
         case when list_workers.only_queues is null then known.queues else array(
           select served.queue
           from unnest(known.queues) with ordinality as served (queue, place)
           where served.queue = any (list_workers.only_queues)
           order by served.place) end,
         known.jobs_max, known.version, known.started_at, known.seen_at, known.stopped_at, coalesce(held.running, 0),
         known.stopped_at is null and known.seen_at < moment - setting.default_lease,
         case when list_workers.only_queues is null then named.tasks end
  from faultline.workers as known
  cross join faultline.settings as setting
  left join faultline.known_tasks as named on named.worker = known.id
  left join (
    select job.claimed_by, count(*) as running
    from faultline.active as job
    where job.claim is not null
      and (list_workers.only_queues is null
           or job.lane in (select lane.id from faultline.lanes as lane where lane.queue = any (list_workers.only_queues)))
    group by job.claimed_by
  ) as held on held.claimed_by = known.id
  where (list_workers.gone or known.stopped_at is null)
    and (list_workers.only_queues is null or known.queues && list_workers.only_queues)
  order by known.stopped_at is not null or known.seen_at < moment - setting.default_lease, known.id desc
  limit list_workers.most;
end;
$$;
