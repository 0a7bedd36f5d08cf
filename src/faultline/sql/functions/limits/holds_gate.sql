-- Whether a job that waits for its retry keeps the gate of its limit closed; null, which takes no space, where it does not.
create function faultline.holds_gate(limit_id int)
returns boolean
language sql
volatile
as $$
  select true
  from faultline.limits as known
  where known.id = holds_gate.limit_id and known.per_key = 1 and known.on_retry = 'block'
$$;
