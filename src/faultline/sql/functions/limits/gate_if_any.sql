-- The gate of a job among others; null if it cannot go with them: its key is missing, or its lane is not listed for its limit yet.
create function faultline.gate_if_any(known faultline.task_limits, limit_key text, args text, queue text, lane int)
returns bigint
language plpgsql
stable
as $$
begin
  if not exists (
    select from faultline.limited_lanes as listed
    where listed.queue = gate_if_any.queue and listed.lane = gate_if_any.lane and listed.limit_id = known.limit_id)
  then
    return null;
  end if;
  return faultline.gate_of(known, gate_if_any.limit_key, gate_if_any.args);
exception when sqlstate 'LS005' then
  return null;
end;
$$;
