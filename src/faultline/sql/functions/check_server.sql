-- Before an id is drawn: on a server that was not met before, step over all numbers that a lost past may have given. The settings know
-- it once a claim or a round was made there; until then each call asks the mark.
create function faultline.check_server()
returns void
language plpgsql
volatile
as $$
begin
  if (select setting.server_started from faultline.settings as setting) <> pg_postmaster_start_time()
     -- Set after the numbers were raised, so a caller that sees it needs no turn: producers do not wait for one another.
     and (select mark.last_value from faultline.server_mark as mark) <> faultline.server_mark() then
    perform faultline.raise_sequences();
  end if;
end;
$$;
