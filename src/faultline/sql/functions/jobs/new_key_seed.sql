-- 64 random bits for the idempotency keys of new jobs.
-- They come from the strong generator: setseed() can make random() repeat its values.
create function faultline.new_key_seed()
returns bytea
language sql
volatile
as $$
  select int8send(uuid_hash_extended(gen_random_uuid(), 0))
$$;
