-- Take or renew the lead of the slow chores; true if this worker leads.
-- The lead is a row with a lease and a term, with the same rules as a job's lease.
create function faultline.lead(worker int, lead_for interval default interval '10 seconds')
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment timestamptz := faultline.now();
begin
  if coalesce(extract(epoch from lead.lead_for) not between 0 and 60, true) then
    raise exception 'a lead lasts from 0 to 60 seconds, not %', coalesce(lead.lead_for::text, 'null')
      using errcode = 'LS005', hint = 'Ask again before it ends: a leader that is gone would hold up every chore.';
  end if;
  update faultline.rounds as row
  set term = row.term + (row.leader is distinct from lead.worker)::int,
      leader = lead.worker,
      leads_until = moment + lead.lead_for,
      -- The age of the chores starts with the first lead, so that a leader which never does them is noticed too.
      chores_at = case when row.chores_at = '-infinity' then moment else row.chores_at end
  from (
    select free.only_row
    from faultline.rounds as free
    where free.leader is not distinct from lead.worker or free.leads_until < moment
       or free.leads_until > moment + interval '1 minute'   -- no lead lasts so long: the clock was set back, or the row was changed by hand
    for no key update skip locked
  ) as free
  where row.only_row = free.only_row;
  return found;
end;
$$;
