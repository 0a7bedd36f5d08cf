-- The number of the first ledger range that was never made.
create function faultline.first_missing_range()
returns bigint
language sql
volatile
as $$
  select coalesce(max(substring(part.relname from '^ledger_([0-9]+)$')::bigint) + 1, 0)
  from pg_catalog.pg_inherits as link
  join pg_catalog.pg_class as part on part.oid = link.inhrelid
  where link.inhparent = 'faultline.ledger'::regclass
$$;
