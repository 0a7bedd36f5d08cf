-- Leases that ended at or after a moment, newest first: a live stream of the ledger reads them repeatedly.
-- Without a moment, those of the last five seconds by this server's clock.
-- The ledger has no index by time, because each completion would pay for it. But a range grows only at its end. So each range is
-- read backwards from its end by ctid, in steps that double, until a step has no young entry.
create function faultline.changes(since timestamptz default null, most int default 1000)
returns setof faultline.entries
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment     constant timestamptz := coalesce(changes.since, faultline.now() - interval '5 seconds');
  pages_left bigint := 4096;   -- 32 MB, for any moment
  part       regclass;
  top        bigint;
  bottom     bigint;
  step       bigint;
  young      boolean;
  ids        bigint[] := '{}';
  slots      bigint[] := '{}';
  more_ids   bigint[];
  more_slots bigint[];
begin
  for part in
    select tree.inhrelid::regclass
    from pg_inherits as tree
    where tree.inhparent = 'faultline.ledger'::regclass
    order by tree.inhrelid desc
  loop
    top := pg_relation_size(part) / current_setting('block_size')::bigint;
    bottom := top;
    step := 4;
    young := top > 0;
    while young and bottom > 0 and pages_left > 0 loop
      bottom := greatest(bottom - step, 0);
      pages_left := pages_left - step;
      step := step * 2;
      execute format(
        'select exists (select from %s as entry where entry.ctid >= $1 and entry.ctid < $2 and entry.settled_at >= $3)', part)
      into young
      using format('(%s,0)', bottom)::tid, format('(%s,0)', least(bottom + step / 2, top))::tid, moment;
    end loop;
    continue when top = 0;
    execute format(
      'select array_agg(young.job_id), array_agg(young.slot) from ('
      'select entry.job_id, entry.slot from %s as entry where entry.ctid >= $1 and entry.settled_at >= $2 '
      'order by entry.settled_at desc limit $3) as young', part)
    into more_ids, more_slots
    using format('(%s,0)', bottom)::tid, moment, changes.most;
    ids := ids || more_ids;
    slots := slots || more_slots;
  end loop;

  return query
  select entry.job_id, entry.token, entry.outcome::text, entry.attempt::int, entry.worker, worker.name, entry.claimed_at,
         entry.settled_at, left(entry.error, 500), entry.task::text, lane.queue::text
  from unnest(ids, slots) as young (job_id, slot)
  join faultline.ledger as entry on entry.job_id = young.job_id and entry.slot = young.slot
  join faultline.lanes as lane on lane.id = entry.lane
  left join faultline.workers as worker on worker.id = entry.worker
  order by entry.settled_at desc, entry.job_id desc
  limit changes.most;
end;
$$;
