-- Replication slots, and the amount of WAL that each keeps from removal; any role can see them.
select slot.slot_name::text as name,
       slot.active,
       slot.wal_status,
       pg_wal_lsn_diff(
         case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end,
         slot.restart_lsn)::bigint as held_bytes
from pg_replication_slots as slot
where not slot.temporary
order by 4 desc nulls last, 1
