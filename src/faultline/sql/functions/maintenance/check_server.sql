-- Before an id is drawn on a new server, raise the sequences above all numbers that a lost past may have used.
-- A claim or a round records the server in the settings. Until then each call compares the mark.
create function faultline.check_server()
returns void
language plpgsql
volatile
as $$
begin
  if (select setting.server_started from faultline.settings as setting) <> pg_postmaster_start_time()
     -- The mark is set after the sequences are raised. A caller that sees it needs no lock, so producers do not wait for each other.
     and (select mark.last_value from faultline.server_mark as mark) <> faultline.server_mark() then
    perform faultline.raise_sequences();
  end if;
end;
$$;
