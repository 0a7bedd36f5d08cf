-- The sizes of our tables, from the server's statistics: nothing is counted.
-- The ledger's partitions are one figure.
create function faultline.table_figures()
returns table (name text, labels text[], value double precision)
language plpgsql
volatile
as $$
#variable_conflict use_column
begin
  return query
  with tables as materialized (
    select case when class.relname like 'ledger%' then 'ledger' else class.relname::text end as name,
           greatest(seen.n_live_tup, 0) as live, seen.n_dead_tup as dead, pg_table_size(class.oid) + pg_indexes_size(class.oid) as bytes
    from pg_class as class
    join pg_stat_user_tables as seen on seen.relid = class.oid
    where class.relnamespace = 'faultline'::regnamespace and class.relkind = 'r'
  )
  select figure.name, array[tables.name], sum(figure.value)::double precision
  from tables
  cross join lateral (
    values ('table_rows', tables.live), ('table_dead_rows', tables.dead), ('table_bytes', tables.bytes)) as figure (name, value)
  group by figure.name, tables.name;
end;
$$;
