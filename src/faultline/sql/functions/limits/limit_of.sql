-- The limit of a new job: the one that its producer names, else that of its task; without either, a row of nulls.
create function faultline.limit_of(task text, limit_name text)
returns faultline.task_limits
language plpgsql
stable
as $$
declare
  known  faultline.task_limits;
  named  int;
begin
  select * into known from faultline.task_limits as listed where listed.task = limit_of.task;
  if limit_of.limit_name is not null then
    select l.id into named from faultline.limits as l where l.name = limit_of.limit_name;
    if named is null then
      raise exception 'there is no limit %', quote_literal(limit_of.limit_name)
        using errcode = 'LS005', hint = 'See `faultline limits list`; make it with `faultline limits set`. Nothing was enqueued.';
    end if;
    -- The task's key counts for another limit too, unless the producer names one.
    known.task := limit_of.task;
    known.limit_id := named;
  end if;
  return known;
end;
$$;
