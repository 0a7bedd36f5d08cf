-- What the server has counted so far; the difference of two answers is what the work between them cost.
select
  (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint as wal_bytes,
  (select stat.xact_commit from pg_stat_database as stat where stat.datname = current_database()) as commits,
  coalesce(sum(stat.n_tup_upd + stat.n_tup_del), 0)::bigint as rows_killed,
  coalesce(sum(stat.n_tup_upd), 0)::bigint as updates,
  coalesce(sum(stat.n_tup_hot_upd), 0)::bigint as hot_updates
from pg_stat_user_tables as stat
where stat.schemaname = 'faultline'
