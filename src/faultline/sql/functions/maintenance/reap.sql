-- running -> queued | dead: take back expired leases; no other function does.
-- An expired lease counts as a crash: the worker did not live to report the failure.
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
  free     boolean;
  far      boolean;
  expired  bigint[];
begin
  perform set_config('lock_timeout', '200ms', true);   -- less than a tick: one held lock must not stop all recovery
  perform faultline.end_when_idle();   -- late completions wait for the rows that it locks
  select * into last from faultline.rounds;

  -- A row that another reaper holds is skipped: reapers do not wait for each other.
  perform from faultline.rounds as row for no key update skip locked;
  free := found;
  if last.hold_until > moment then
    if free then
      update faultline.rounds as row set reaped_at = moment;
    end if;
    return;   -- hold fire: an outage is not a crash
  end if;
  -- Once a minute the walk goes past every lane's top, which is only a hint. While a lock prevents the record of it, each walk
  -- does so after two minutes.
  far := last.walked_at <= moment - interval '1 minute' * case when free then 1 else 2 end
      or last.walked_at > moment;   -- in the future: the clock was set back
  if free then
    update faultline.rounds as row
    set reaped_at = moment, walked_at = case when far then moment else row.walked_at end;
  end if;
  calm := not exists (
    select from unnest(last.gap_at) as gap (ended)
    where moment between gap.ended and gap.ended + interval '1 day');   -- the longest lease

  -- One statement finds and locks: it sees a heartbeat or a completion that comes first, and skips one that is under way.
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
        -- A lease whose heartbeats a gap may have stopped lasts its own full length after the gap, not the default.
        and (calm or not faultline.spared(faultline.lease_of(job.lease_for, job.claimed_by), last, moment))
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
