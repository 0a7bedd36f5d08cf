-- 64 bits for the idempotency keys of new jobs, by the strong generator: those of random() can be set by setseed(), and come again.
create function faultline.new_key_seed()
returns bytea
language sql
volatile
as $$
  select int8send(uuid_hash_extended(gen_random_uuid(), 0))
$$;
