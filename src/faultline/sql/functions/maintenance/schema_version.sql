-- The newest migration of this database, and the oldest client that may work on it.
-- Every client calls it, also with a role that may read no table.
create function faultline.schema_version()
returns table (newest int, oldest_client int)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select max(migration.number), max(setting.oldest_client)
  from faultline.migrations as migration
  cross join faultline.settings as setting;
end;
$$;
