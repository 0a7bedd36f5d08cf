-- How many bytes of WAL the server has written in total; the difference of two values is the cost of the work in between.
create function faultline.wal_written()
returns bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$ select (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint $$;
