-- Which of these jobs are no longer on their way: what whoever waits for them asks, for all of them at once.
create function faultline.ended(ids bigint[])
returns table (id bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  -- One statement, one snapshot: a job that moves from one table to the other is seen in one of them.
  return query
  select asked.id
  from unnest(ended.ids) as asked (id)
  where not exists (select from faultline.active as job where job.id = asked.id)
    and not exists (select from faultline.later as job where job.id = asked.id);
end;
$$;
