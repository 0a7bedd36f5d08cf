-- Record the server that writes now, and raise the epoch if it is not the last one.
create function faultline.record_server()
returns void
language plpgsql
volatile
as $$
declare
  here    int;
  server  bigint;
begin
  begin
    here := faultline.timeline();
    select control.system_identifier into server from pg_control_system() as control;
  exception when others then
    -- A server that does not give both values: its numbers go on from the clock alone.
    here := 1;
    server := 0;
  end;

  -- Another server, or a timeline that started again (pg_upgrade, dump and restore): go above all earlier tokens.
  update faultline.settings as setting
  set base = setting.base + setting.timeline,
      system_identifier = server,
      timeline = here
  where setting.system_identifier <> server
     or setting.timeline > here;

  -- A promotion: the timeline itself raises the epoch.
  update faultline.settings as setting
  set timeline = here
  where setting.timeline < here;

  update faultline.settings as setting
  set server_started = pg_postmaster_start_time()
  where setting.server_started <> pg_postmaster_start_time();
end;
$$;
