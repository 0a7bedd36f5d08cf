-- The jobs among these that are no longer queued or running: one question for all jobs that a client waits for.
create function faultline.ended(ids bigint[])
returns table (id bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  -- One statement has one snapshot: a job that moves from one table to the other is seen in one of them.
  return query
  select asked.id
  from unnest(ended.ids) as asked (id)
  where not exists (select from faultline.active as job where job.id = asked.id)
    and not exists (select from faultline.later as job where job.id = asked.id);
end;
$$;
