-- One at a time for a name of API keys: two that make or rotate it wait for each other.
create function faultline.hold_key_name(name text)
returns void
language sql
volatile
as $$
  select pg_advisory_xact_lock(hashtextextended('faultline key ' || hold_key_name.name, 0))
$$;
