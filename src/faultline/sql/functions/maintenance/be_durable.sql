-- Raise synchronous_commit for this transaction if it is too low; never lower it.
-- A SET clause on the function would end before the commit it is meant for.
create function faultline.be_durable()
returns void
language plpgsql
as $$
begin
  if current_setting('synchronous_commit') in ('off', 'local', 'remote_write') then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end;
$$;
