-- How many claims the server has timed, and how many milliseconds they took; nothing where it does not time them.
select stat.calls, stat.total_time
from pg_stat_user_functions as stat
where stat.schemaname = 'faultline' and stat.funcname = 'claim'
