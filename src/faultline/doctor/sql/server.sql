-- Whether a server accepts writes, and its identity: two host names may lead to one server.
-- The start of its process, in microseconds, tells servers apart; some services refuse to show the system identifier.
select not pg_is_in_recovery() and not current_setting('default_transaction_read_only')::boolean as writable,
       pg_is_in_recovery() as in_recovery,
       extract(epoch from pg_postmaster_start_time())::text as identity
