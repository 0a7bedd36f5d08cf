-- Record the tasks that a worker knows: its claims take no other jobs. With null, its claims take jobs of every task.
create function faultline.know_tasks(worker int, tasks text[])
returns void
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if know_tasks.tasks is null then
    delete from faultline.known_tasks as known where known.worker = know_tasks.worker;
    return;
  end if;

  -- Cast to the domain: a name that no task can have is refused.
  insert into faultline.known_tasks as known (worker, tasks, names)
  select listed.id, know_tasks.tasks::faultline.task_name[]::text[],
         (select coalesce(jsonb_object_agg(each.name, 1), '{}') from unnest(know_tasks.tasks) as each (name))
  from faultline.workers as listed
  where listed.id = know_tasks.worker
  on conflict on constraint known_tasks_pkey do update
  set tasks = excluded.tasks, names = excluded.names
  where known.tasks is distinct from excluded.tasks;
end;
$$;
