-- Let one transaction at a time create or rotate API keys; keys can be used and revoked meanwhile.
-- It locks the table, which only the owner may do: any login can hold an advisory lock.
create function faultline.hold_keys()
returns void
language sql
volatile
as $$
  lock table faultline.api_keys in share update exclusive mode
$$;
