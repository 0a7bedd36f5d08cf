-- The floor of all tokens: it rises with each promotion, upgrade or restore, so no server issues a lower token than the last.
create function faultline.epoch()
returns bigint
language plpgsql
volatile
as $$
declare
  known   faultline.settings;
  here    int := faultline.timeline();
  server  bigint;
begin
  select control.system_identifier into server from pg_control_system() as control;
  select * into known from faultline.settings;

  if known.system_identifier = server and known.timeline = here then
    return (known.base + here - 1) << 40;
  end if;

  -- Another server, or a timeline that started again (pg_upgrade, dump and restore): step over all it issued before.
  update faultline.settings as setting
  set base = setting.base + setting.timeline,
      system_identifier = server,
      timeline = here
  where setting.system_identifier <> server
     or setting.timeline > here;

  -- A promotion: the timeline itself has raised the epoch; remember it.
  update faultline.settings as setting
  set timeline = here
  where setting.timeline < here;

  select * into known from faultline.settings;
  return (known.base + known.timeline - 1) << 40;
end;
$$;
