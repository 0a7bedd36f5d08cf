-- Which database this is: two connections are to the same one, or to a standby of it, where the answers are equal.
-- A service that does not give its system identifier is known by the one recorded at the installation, or by the database alone.
create function faultline.database_identity()
returns text
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  cluster bigint;
begin
  begin
    select control.system_identifier into cluster from pg_control_system() as control;
  exception when others then
    select setting.system_identifier into cluster from faultline.settings as setting;
  end;
  return cluster || ':' || (select known.oid from pg_database as known where known.datname = current_database());
end;
$$;
