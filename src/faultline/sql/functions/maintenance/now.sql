-- The clock of all functions.
-- Each function reads it once; tests replace it.
create function faultline.now()
returns timestamptz
language sql
volatile
as $$ select clock_timestamp() $$;
