-- The floor of all tokens; it rises with each promotion, upgrade or restore, so a new server issues no lower token.
-- Two servers on the same timeline are ordered by their clocks (raise_sequences).
create function faultline.epoch()
returns bigint
language plpgsql
volatile
as $$
declare
  known  faultline.settings;
begin
  select * into known from faultline.settings;

  -- A server process writes one timeline of one cluster: a standby writes nothing before its promotion.
  if known.server_started <> pg_postmaster_start_time() then
    perform faultline.raise_sequences();
    perform faultline.record_server();
    select * into known from faultline.settings;
  end if;
  return (known.base + known.timeline - 1) << 40;
end;
$$;
