-- running -> queued | dead: take back the leases that nobody renewed. The only taker of expired leases; a crash is
-- a failure report the worker did not live to make.
create function faultline.reap(most int default 500)
returns table (id bigint, token bigint, worker int, task text, queue text, died boolean)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment   timestamptz := faultline.now();
  last     faultline.rounds;
  calm     boolean;
  far      boolean;
  expired  bigint[];
begin
  perform set_config('lock_timeout', '200ms', true);   -- under a tick: one held lock must not stall all recovery
  select * into last from faultline.rounds;
  if last.hold_until > moment then
    return;   -- hold fire: an outage is not a crash
  end if;
  calm := moment not between last.gap_at and last.gap_at + interval '1 day';   -- which is the longest lease

  -- Once a minute past every lane's top, which is only a hint. Whoever is at it is not waited for: reapers never stall each other.
  perform from faultline.rounds as row
  where row.walked_at <= moment - interval '1 minute' or row.walked_at > moment   -- later than now: the clock was set back
  for no key update skip locked;
  far := found;
  if far then
    update faultline.rounds as row set walked_at = moment;
  end if;

  -- Look and lock in one statement: a heartbeat or a completion that comes first is seen, one that is under way is skipped.
  expired := array(
    select late.id
    from (
      select claimed_from.id, claimed_from.top from faultline.lanes as claimed_from where claimed_from.top > 0
      union all
      select quiet.id, quiet.top from faultline.lanes as quiet where far and quiet.top = 0
    ) as lane
    cross join lateral (
      select job.id
      from faultline.active as job
      where job.lane = lane.id
        and (far or job.pos <= lane.top)
        and job.lease_until < moment
        -- After a gap that may have cost it its beats, a lease has its own time from there; shorter and longer ones than the default.
        and (calm or last.gap <= faultline.lease_of(job.lease_for, job.claimed_by) / 2
                  or last.gap_at + faultline.lease_of(job.lease_for, job.claimed_by) <= moment)
      order by job.pos
      limit reap.most
      for no key update skip locked
    ) as late
    limit reap.most);

  if cardinality(expired) > 0 then
    perform faultline.be_durable();
    return query select * from faultline.put_back(expired, 'expired', 'lease expired', moment, crashed => true);
  end if;
end;
$$;
