-- The server's settings of replication; `sees_standbys` is false for a role to which PostgreSQL shows names only.
select pg_is_in_recovery() as in_recovery,
       current_setting('synchronous_standby_names') as synchronous_standby_names,
       pg_has_role(current_user, 'pg_read_all_stats', 'usage') as sees_standbys
