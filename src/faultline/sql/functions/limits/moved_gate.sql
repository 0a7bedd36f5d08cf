-- The gate of a job that comes under the limit that its task has now. A key that its producer named stays.
create function faultline.moved_gate(known faultline.task_limits, limit_id int, gate bigint, args text)
returns bigint
language plpgsql
stable
as $$
declare
  before  faultline.task_limits := known;
begin
  if known.limit_id is not null and moved_gate.limit_id is not null then
    before.key_path := known.old_path;
    if moved_gate.gate is distinct from faultline.gate_in(before, moved_gate.args) then
      return moved_gate.gate;
    end if;
  end if;
  return faultline.gate_in(known, moved_gate.args);
end;
$$;
