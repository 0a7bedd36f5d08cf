-- The floor of all tokens: it rises with each promotion, upgrade or restore, so no server issues a lower token than the last.
create function faultline.epoch()
returns bigint
language plpgsql
volatile
as $$
declare
  known   faultline.settings;
  -- The timeline, by the WAL's name: right after a promotion pg_control_checkpoint() still tells the old one.
  here    int := ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int;
  server  bigint;
begin
  select * into known from faultline.settings;

  -- A server process serves one cluster all its life: only the timeline can change under it, by a promotion.
  if known.server_started = pg_postmaster_start_time() and known.timeline = here then
    return (known.base + here - 1) << 40;
  end if;

  select control.system_identifier into server from pg_control_system() as control;
  if not (known.system_identifier = server and known.timeline = here) then
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
  end if;

  update faultline.settings as setting
  set server_started = pg_postmaster_start_time()
  where setting.server_started <> pg_postmaster_start_time();

  select * into known from faultline.settings;
  return (known.base + known.timeline - 1) << 40;
end;
$$;
