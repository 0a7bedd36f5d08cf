-- The identity of this server process: its start, in microseconds.
-- A restart, an upgrade and a restore start a new process. A standby is another process, and writes only after its promotion.
create function faultline.server_mark()
returns bigint
language sql
volatile
as $$ select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint $$;
