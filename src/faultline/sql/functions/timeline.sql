-- The timeline that this server writes, by the WAL's name: right after a promotion pg_control_checkpoint() still tells the old one.
-- The one place that asks for it. It raises where a server has no WAL to name (Aurora, unless it is logical): epoch() goes on without.
create function faultline.timeline()
returns int
language sql
volatile
as $$ select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int $$;
