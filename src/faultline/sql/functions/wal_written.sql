-- How many bytes of log the server has written in its life; the difference of two is what the work between them cost.
create function faultline.wal_written()
returns bigint
language sql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$ select (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint $$;
