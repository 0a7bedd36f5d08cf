-- The keys of a limit at which jobs hold a slot or wait for one, those with the most waiting first; each counted up to 10,000.
-- A key is named as the args of its first job have it; the database keeps its hash alone.
create function faultline.list_gates(name text, most int default 20)
returns table (gate bigint, key text, held bigint, waiting bigint, first_job bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  known faultline.limits;
begin
  select * into known from faultline.limits as l where l.name = list_gates.name;
  if known.id is null then
    raise exception 'there is no limit %', quote_literal(list_gates.name)
      using errcode = 'LS005', hint = 'See `faultline limits list`.';
  end if;
  return query
  with counted as (
    select job.gate, 0::bigint as held, count(*) as waiting, min(job.id) as id
    from (
      select job.gate, job.id
      from faultline.later as job
      where job.limit_id = known.id and job.place is not null
      limit 100000
    ) as job
    group by job.gate
    union all
    select job.gate, count(*), 0, min(job.id)
    from (select job.gate, job.id from faultline.active as job where job.limit_id = known.id limit 100000) as job
    group by job.gate
  ),
  gates as (
    select counted.gate, sum(counted.held)::bigint as held, least(sum(counted.waiting), 10000)::bigint as waiting, min(counted.id) as id
    from counted
    group by counted.gate
    order by 3 desc, 2 desc, 1
    limit list_gates.most
  )
  select gates.gate, faultline.readable(job.args) #>> tied.key_path, gates.held, gates.waiting, gates.id
  from gates
  left join lateral (
    select row.task, row.args::text as args from faultline.later as row where row.id = gates.id
    union all
    select row.task, row.args::text from faultline.active as row where row.id = gates.id
    limit 1
  ) as job on true
  left join faultline.task_limits as tied on tied.task = job.task
  order by gates.waiting desc, gates.held desc, gates.gate;
end;
$$;
