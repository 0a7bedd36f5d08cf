-- What this transaction answers from rows becomes as durable as what it writes: its commit waits for the synchronous standbys.
-- A commit that wrote nothing waits for nobody. But the row it has read may be on this server alone: the wait of the commit that made it
-- was cancelled (its client gave up), or the server crashed in it. An empty message in the log, behind that row, makes this commit wait.
-- Without synchronous standbys there is nobody to wait for, and in a read-only transaction nothing can be written.
create function faultline.read_durably()
returns void
language plpgsql
as $$
begin
  if current_setting('synchronous_standby_names') <> '' and current_setting('transaction_read_only') = 'off' then
    perform faultline.be_durable();
    perform pg_logical_emit_message(true, 'faultline', ''::text);
  end if;
end;
$$;
