-- How large the tables are at this moment, and how many dead rows the server knows of.
select
  pg_relation_size('faultline.active') as active_bytes,
  pg_indexes_size('faultline.active') as active_index_bytes,
  pg_total_relation_size('faultline.later') as later_bytes,
  (select coalesce(sum(pg_total_relation_size(part.relid)), 0)::bigint
   from pg_partition_tree('faultline.ledger') as part) as ledger_bytes,
  (select coalesce(sum(stat.n_dead_tup), 0)::bigint
   from pg_stat_user_tables as stat where stat.schemaname = 'faultline') as dead_rows
