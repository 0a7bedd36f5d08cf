-- The gate of a job that exists, by its args: 0 where its key is missing or its args are damaged, null where its task has no limit.
create function faultline.gate_in(known faultline.task_limits, args text)
returns bigint
language plpgsql
stable
as $$
begin
  if known.limit_id is null then
    return null;
  end if;
  return faultline.gate_of(known, null, gate_in.args);
exception when others then
  return 0;
end;
$$;
