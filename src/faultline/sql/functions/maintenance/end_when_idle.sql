-- Let the server end this session when it is idle in this transaction for 5 s: other sessions wait for its locks.
-- A lower limit stays. A SET clause on the function would end before the idle time.
create function faultline.end_when_idle()
returns void
language plpgsql
as $$
begin
  if current_setting('idle_in_transaction_session_timeout')::interval not between interval '1 ms' and interval '5 s' then
    perform set_config('idle_in_transaction_session_timeout', '5s', true);
  end if;
end;
$$;
