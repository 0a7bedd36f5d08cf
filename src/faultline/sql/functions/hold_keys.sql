-- One at a time for API keys: two that make or rotate them wait for each other, while keys are used and revoked as ever.
-- A lock of the table, which only its owner may take: any login can hold an advisory lock.
create function faultline.hold_keys()
returns void
language sql
volatile
as $$
  lock table faultline.api_keys in share update exclusive mode
$$;
