-- The one clock. Each verb reads it once; tests put another in its place.
create function faultline.now()
returns timestamptz
language sql
volatile
as $$ select clock_timestamp() $$;
