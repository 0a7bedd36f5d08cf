-- Forget occurrences past the retention of the ledger, in a bounded batch.
create function faultline.prune_occurrences(most int default 1000)
returns bigint
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  moment   timestamptz := faultline.now();
  deleted  bigint;
begin
  with old as materialized (
    select noted.schedule, noted.at
    from faultline.occurrences as noted
    where noted.decided_at < moment - (select known.ledger_retention from faultline.settings as known)
    order by noted.decided_at
    limit prune_occurrences.most
    for update skip locked
  )
  delete from faultline.occurrences as noted using old where noted.schedule = old.schedule and noted.at = old.at;
  get diagnostics deleted = row_count;
  return deleted;
end;
$$;
