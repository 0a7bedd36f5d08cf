-- The gate of each job of a call; a job without the key of its limit fails the call.
create function faultline.gates_of(known faultline.task_limits, limit_keys text[], args text[])
returns bigint[]
language plpgsql
stable
as $$
begin
  if cardinality(limit_keys) <> cardinality(args) then
    raise exception 'got % keys of the limit for % jobs', cardinality(limit_keys), cardinality(args)
      using errcode = 'LS005', hint = 'Give one limit_key a job, null for a job whose args have it.';
  end if;
  return array(
    select faultline.gate_of(known, asked.limit_key, asked.args)
    from unnest(gates_of.args, gates_of.limit_keys) with ordinality as asked (args, limit_key, place)
    order by asked.place);
end;
$$;
