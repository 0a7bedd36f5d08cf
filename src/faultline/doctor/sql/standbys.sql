-- The receivers of this server's WAL. State and positions are null for a role without pg_monitor.
-- A base backup is not a standby, and a logical subscriber is one only if commits wait for it.
select coalesce(nullif(sender.application_name, ''), sender.pid::text) as name,
       sender.state,
       sender.sync_state,
       pg_wal_lsn_diff(
         case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
         sender.replay_lsn)::bigint as behind_bytes,
       extract(epoch from sender.replay_lag)::double precision as lag_seconds
from pg_stat_replication as sender
left join pg_replication_slots as slot on slot.active_pid = sender.pid
where sender.state is distinct from 'backup'
  and (slot.slot_type is distinct from 'logical' or sender.sync_state in ('sync', 'quorum'))
order by 1
