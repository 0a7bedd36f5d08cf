-- running -> running: renew the leases of a worker; the answer for each is held, busy (locked: ask again), lost or cancel.
create function faultline.heartbeat(
  ids bigint[], tokens bigint[], claims uuid[], lease faultline.lease_time, worker int default null)
returns table (id bigint, token bigint, answer text)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment    timestamptz := faultline.now();
  held_ids  bigint[];
  held_by   uuid[];
  places    tid[];
begin
  -- Without this check a missing lease would reach to the deadline: least() ignores a null.
  if heartbeat.lease is null then
    raise exception 'a heartbeat names the lease it asks for; it is null' using errcode = 'LS005', hint = 'Give a lease such as 15 seconds.';
  end if;

  if cardinality(heartbeat.ids) = 0 then   -- an idle worker: only its sign of life
    perform faultline.worker_seen(heartbeat.worker, moment, heartbeat.lease);
    return;
  end if;

  -- As in complete_many, a subquery for each job: it uses the primary key even with wrong statistics.
  with held as materialized (
    select job.id, job.claim, job.place
    from unnest(heartbeat.ids, heartbeat.tokens, heartbeat.claims) as beat (id, token, claim)
    cross join lateral (
      select job.id, job.claim, job.ctid as place
      from faultline.active as job
      where job.id = beat.id and job.token = beat.token and job.claim = beat.claim
      for no key update skip locked
    ) as job
  )
  select array_agg(held.id), array_agg(held.claim), array_agg(held.place) into held_ids, held_by, places from held;

  -- A separate statement, as in complete_many: it sees the row version that was locked. A lease never gets shorter, and never
  -- passes the hard deadline.
  update faultline.active as job
  set lease_until = greatest(job.lease_until, least(moment + coalesce(job.lease_for, heartbeat.lease), job.deadline_at))
  where job.ctid = any (places);

  perform faultline.worker_seen(heartbeat.worker, moment, heartbeat.lease);

  if cardinality(held_ids) = cardinality(heartbeat.ids) then
    return query select beat.id, beat.token, 'held' from unnest(heartbeat.ids, heartbeat.tokens) as beat (id, token);
    return;
  end if;

  -- By job and claim, never by job alone: a worker may send an old and a new lease of one job.
  return query
  select beat.id, beat.token,
    case
      when held.id is not null then 'held'
      when job.id is not null then 'busy'
      when ended.outcome = 'cancelled' then 'cancel'
      else 'lost'
    end
  from unnest(heartbeat.ids, heartbeat.tokens, heartbeat.claims) as beat (id, token, claim)
  left join lateral (
    select mine.id from unnest(held_ids, held_by) as mine (id, claim) where mine.id = beat.id and mine.claim = beat.claim limit 1
  ) as held on true   -- a lease that is named twice is answered twice, not four times
  left join faultline.active as job
    on held.id is null and job.id = beat.id and job.token = beat.token and job.claim = beat.claim
  left join faultline.ledger as ended on held.id is null and ended.job_id = beat.id and ended.slot = 0;
end;
$$;
