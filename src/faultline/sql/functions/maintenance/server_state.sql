-- Whether this server takes writes, and how new its history is: a client with several hosts chooses by it.
-- It only reads, so a standby answers too. `epoch` is the epoch that the next claim would use.
create function faultline.server_state()
returns table (read_only boolean, cluster bigint, epoch bigint, token bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  known faultline.settings;
  here  int;
begin
  select * into known from faultline.settings;
  read_only := pg_is_in_recovery() or current_setting('transaction_read_only') = 'on';

  begin
    select control.system_identifier into cluster from pg_control_system() as control;
  exception when others then
    cluster := 0;
  end;
  begin
    here := faultline.timeline();
  exception when others then
    here := known.timeline;   -- a standby, or a service that does not give it: the last recorded one
  end;

  epoch := known.base + here
         + case when known.system_identifier <> cluster or known.timeline > here then known.timeline else 0 end;
  select numbers.last_value into token from faultline.tokens as numbers;
  return next;
end;
$$;
