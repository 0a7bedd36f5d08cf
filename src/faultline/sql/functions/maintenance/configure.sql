-- Change the settings of the whole installation; a setting that is left out stays.
create function faultline.configure(
  default_lease faultline.lease_time default null, ledger_retention interval default null, dead_retention interval default null,
  acts_retention interval default null)
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform faultline.be_durable();
  update faultline.settings as setting
  set default_lease    = coalesce(configure.default_lease, setting.default_lease),
      ledger_retention = coalesce(configure.ledger_retention, setting.ledger_retention),
      dead_retention   = coalesce(configure.dead_retention, setting.dead_retention),
      acts_retention   = coalesce(configure.acts_retention, setting.acts_retention);
  perform faultline.note_act('configure', detail => jsonb_strip_nulls(jsonb_build_object(
    'default_lease', configure.default_lease, 'ledger_retention', configure.ledger_retention,
    'dead_retention', configure.dead_retention, 'acts_retention', configure.acts_retention)));
end;
$$;
