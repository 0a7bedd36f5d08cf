-- Whether a job stays at its gate with other args. It does where it has no limit, or its producer named the key of the limit.
create function faultline.keeps_gate(limit_id int, gate bigint, task text, args text, new_args text)
returns boolean
language plpgsql
stable
as $$
declare
  known  faultline.task_limits;
begin
  if keeps_gate.limit_id is null then
    return true;
  end if;
  known := faultline.limit_of(keeps_gate.task, null);
  return faultline.gate_in(known, keeps_gate.new_args) is not distinct from faultline.gate_in(known, keeps_gate.args)
      or faultline.gate_in(known, keeps_gate.args) is distinct from keeps_gate.gate;
end;
$$;
