-- The gate at which a job waits: the hash of its key, which the producer named or which stands in the args; 0 for a limit without keys.
create function faultline.gate_of(known faultline.task_limits, limit_key text, args text)
returns bigint
language plpgsql
stable
as $$
declare
  found_key jsonb;
  named     text := gate_of.limit_key;
begin
  if named is null and known.key_path is not null then
    found_key := gate_of.args::jsonb #> known.key_path;
    if coalesce(jsonb_typeof(found_key), 'null') in ('null', 'object', 'array') then
      raise exception 'the args of task % have no % that is a text, a number or a boolean: the key of its limit %',
          known.task, array_to_string(known.key_path, '.'),
          (select l.name from faultline.limits as l where l.id = known.limit_id)
        using errcode = 'LS005', hint = 'Give it in the args, or name limit_key. Nothing was enqueued.';
    end if;
    -- 1 and 1.0 are one key.
    named := case jsonb_typeof(found_key) when 'number' then trim_scale((found_key #>> '{}')::numeric)::text else found_key #>> '{}' end;
  end if;
  if named is null and (select l.per_key is not null from faultline.limits as l where l.id = known.limit_id) then
    raise exception 'limit % counts per key, and this job names none',
        (select l.name from faultline.limits as l where l.id = known.limit_id)
      using errcode = 'LS005', hint = 'Name limit_key. Nothing was enqueued.';
  end if;
  if char_length(named) > 255 then
    raise exception 'the key of a limit has at most 255 characters, this one has %', char_length(named)
      using errcode = 'LS005', hint = 'Nothing was enqueued.';
  end if;
  return coalesce(hashtextextended(named, 0), 0);
end;
$$;
