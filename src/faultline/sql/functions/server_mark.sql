-- What tells this server process from every other one: the microsecond of its start. A restart, an upgrade and a restore make another
-- process; a standby is another one from the beginning, and writes only after its promotion.
create function faultline.server_mark()
returns bigint
language sql
volatile
as $$ select (extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint $$;
