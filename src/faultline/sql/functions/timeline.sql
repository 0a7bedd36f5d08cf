-- The server's timeline. Right after a promotion pg_control_checkpoint() still tells the old one; the WAL's name does not.
create function faultline.timeline()
returns int
language sql
volatile
as $$ select ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int $$;
