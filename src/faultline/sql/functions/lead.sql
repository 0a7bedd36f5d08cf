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
  update faultline.rounds as row
  set term = row.term + (row.leader is distinct from lead.worker)::int,
      leader = lead.worker,
      leads_until = moment + lead.lead_for
  from (
    select free.only_row
    from faultline.rounds as free
    where free.leader is not distinct from lead.worker or free.leads_until < moment
    for no key update skip locked
  ) as free
  where row.only_row = free.only_row;
  return found;
end;
$$;
