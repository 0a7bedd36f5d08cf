-- Who leads the slow chores: a lease row with a term, by the same rules as a job's lease. True for the leader.
create function faultline.lead(worker int, lead_for interval default interval '10 seconds')
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment timestamptz := faultline.now();
begin
  if coalesce(lead.lead_for not between interval '0' and interval '1 minute', true) then
    raise exception 'a lead lasts from 0 to 60 seconds, not %', coalesce(lead.lead_for::text, 'null')
      using errcode = 'LS005', hint = 'Ask again before it ends: a leader that is gone would hold up every chore.';
  end if;
  update faultline.rounds as row
  set term = row.term + (row.leader is distinct from lead.worker)::int,
      leader = lead.worker,
      leads_until = moment + lead.lead_for,
      -- Counted from the first lead on: a leader that never did a chore is noticed like one that stopped doing them.
      chores_at = case when row.chores_at = '-infinity' then moment else row.chores_at end
  from (
    select free.only_row
    from faultline.rounds as free
    where free.leader is not distinct from lead.worker or free.leads_until < moment
       or free.leads_until > moment + interval '1 minute'   -- no lead is as long: the clock was set back, or it was written by hand
    for no key update skip locked
  ) as free
  where row.only_row = free.only_row;
  return found;
end;
$$;
