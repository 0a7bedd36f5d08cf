-- How many jobs of each limit hold a slot and wait for one, for `metrics` and with its bounds: the first hundred limits by name.
create function faultline.limit_figures()
returns table (name text, labels text[], value double precision)
language plpgsql
volatile
as $$
#variable_conflict use_column
declare
  share int;   -- counted of one limit: all together stay under 200,000
begin
  if not faultline.uses_limits() then
    return;
  end if;
  select least(10000, 100000 / greatest(count(*), 1)) into share from (select from faultline.limits limit 100) as looked_at;
  return query
  select 'limit_jobs', array[known.name, state.word], state.many::double precision
  from (select l.id, l.name::text as name from faultline.limits as l order by l.name limit 100) as known
  cross join lateral (
    select 'held' as word, count(*) as many
    from (select from faultline.active as job where job.limit_id = known.id limit share) as job
    union all
    select 'waiting', count(*)
    from (select from faultline.later as job where job.limit_id = known.id and job.place is not null limit share) as job
  ) as state;
end;
$$;
