-- Make rows that this transaction reads as durable as rows it writes: its commit waits for the synchronous standbys.
-- A commit without writes does not wait. But the row that was read may be only on this server: the commit that wrote it stopped
-- waiting (its client gave up), or the server crashed meanwhile. An empty message in the log, after that row, makes this commit wait.
-- Without synchronous standbys there is nothing to wait for, and a read-only transaction can write nothing.
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
