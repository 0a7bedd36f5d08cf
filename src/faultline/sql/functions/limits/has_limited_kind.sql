-- Whether one of the kinds of a call names a limit, or has a task with one.
create function faultline.has_limited_kind(kinds jsonb)
returns boolean
language sql
stable
as $$
  select exists (
    select
    from jsonb_to_recordset(kinds) as named (task text, limit_name text)
    where named.limit_name is not null
       or exists (select from faultline.task_limits as tied where tied.task = named.task))
$$;
