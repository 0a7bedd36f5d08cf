-- Every limit, or the one of this name: its bounds, its tasks, and how many jobs hold a slot and wait for one (counted up to 10,000).
create function faultline.list_limits(name text default null)
returns table (
  limit_name text, per_key int, total int, rate double precision, burst int, on_retry text, parent text, tasks text[], queues text[],
  held bigint, waiting bigint, tokens int)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  moment timestamptz := faultline.now();
begin
  return query
  select known.name::text, known.per_key, known.total, known.rate, known.burst, known.on_retry, above.name::text,
         array(select tied.task::text from faultline.task_limits as tied where tied.limit_id = known.id order by 1),
         array(select distinct listed.queue::text from faultline.limited_lanes as listed where listed.limit_id = known.id order by 1),
         (select count(*) from (select from faultline.active as job where job.limit_id = known.id limit 10000) as job),
         (select count(*)
          from (select from faultline.later as job where job.limit_id = known.id and job.place is not null limit 10000) as job),
         faultline.tokens_left(known, moment)
  from faultline.limits as known
  left join faultline.limits as above on above.id = known.parent
  where list_limits.name is null or known.name = list_limits.name
  order by known.name;
end;
$$;
