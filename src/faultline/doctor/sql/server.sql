-- Whether a server accepts writes, and its identity: two host names may lead to one server.
select not pg_is_in_recovery() and not current_setting('default_transaction_read_only')::boolean as writable,
       pg_is_in_recovery() as in_recovery,
       control.system_identifier::text || ' ' || extract(epoch from pg_postmaster_start_time())::text as identity
from pg_control_system() as control
