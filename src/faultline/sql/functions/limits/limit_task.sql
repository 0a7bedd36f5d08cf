-- Tie a task to a limit and to the place of its key in the args; with a null limit, free it.
-- True if jobs that exist have still to move, by `move_to_gates`.
create function faultline.limit_task(
  task faultline.task_name, limit_name text, key_path text[] default null, queue faultline.queue_name default null)
returns boolean
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  known   faultline.limits;
  changed int;
begin
  perform faultline.be_durable();
  if limit_task.limit_name is null then
    delete from faultline.task_limits as listed where listed.task = limit_task.task;
    get diagnostics changed = row_count;
  else
    select * into known from faultline.limits as l where l.name = limit_task.limit_name;
    if known.id is null then
      raise exception 'there is no limit %', quote_literal(limit_task.limit_name)
        using errcode = 'LS005', hint = 'See `faultline limits list`; make it with `faultline limits set`.';
    end if;
    perform setval('faultline.limits_used', 1);
    insert into faultline.task_limits as listed (task, limit_id, key_path) values (limit_task.task, known.id, limit_task.key_path)
    on conflict on constraint task_limits_pkey do update
    set limit_id = excluded.limit_id, key_path = excluded.key_path, moved = false,
        old_path = case when listed.moved then listed.key_path else listed.old_path end
    where (listed.limit_id, listed.key_path) is distinct from (excluded.limit_id, excluded.key_path);
    get diagnostics changed = row_count;
    if limit_task.queue is not null then
      perform faultline.list_lane(known.id, faultline.lane_of(limit_task.queue, 0));   -- before producers need it
    end if;
  end if;
  if changed > 0 then
    perform faultline.note_act('limit_task', detail => jsonb_build_object(
      'task', limit_task.task, 'limit', limit_task.limit_name, 'key', array_to_string(limit_task.key_path, '.')));
  else
    perform faultline.read_durably();
  end if;
  return changed > 0 or exists (
    select from faultline.task_limits as listed where listed.task = limit_task.task and not listed.moved);
end;
$$;
