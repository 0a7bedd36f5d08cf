-- The place that a job takes at its gate when it comes back: its own where jobs of a key run in order, else the last.
create function faultline.place_at_gate(limit_id int, id bigint)
returns bigint
language sql
volatile
as $$
  select case when (select known.per_key = 1 from faultline.limits as known where known.id = place_at_gate.limit_id)
              then place_at_gate.id
              else nextval('faultline.places') end
$$;
