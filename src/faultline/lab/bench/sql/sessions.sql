-- Other sessions connected to this database.
select session.pid
from pg_stat_activity as session
where session.datname = current_database() and session.pid <> pg_backend_pid() and session.backend_type = 'client backend'
