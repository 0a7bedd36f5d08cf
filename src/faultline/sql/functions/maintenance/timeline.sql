-- The timeline that this server writes, from the name of its WAL file.
-- Right after a promotion, pg_control_checkpoint() still returns the old one. It raises on a server without WAL names (Aurora, unless
-- it is logical); epoch() then goes on without it.
create function faultline.timeline()
returns int
language sql
volatile
as $$ select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int $$;
