-- Admit up to `wanted` jobs of these gates, one of each gate before a second of any: the caller holds the lock of the limit.
-- Of each gate only its part is read and locked, and those that have more are asked again for the rest.
create function faultline.admit_in_turn(
  own faultline.limits, lane int, wait_floor bigint, gates bigint[], wanted int, moment timestamptz, known jsonb, except_tasks text[])
returns int
language plpgsql
volatile
as $$
declare
  given  int := 0;
  step   int;
  moved  int;
begin
  while given < wanted and cardinality(gates) > 0 loop
    step := ceil((wanted - given)::float8 / cardinality(gates));

    -- One statement, so one snapshot: what is held is counted as of the moment at which jobs are picked, or fewer would be seen.
    with fit as materialized (
      select job.spot, job.id, job.rank, job.place
      from (select gate, random() as turn from unnest(gates) as gate) as g   -- by place, the oldest key would have each slot
      cross join lateral (
        select count(*) as many
        from (
          select
          from faultline.active as job
          where own.per_key is not null   -- else nothing is counted
            and job.limit_id = own.id and job.gate = g.gate and job.pos >= own.held_floor
          limit own.per_key
        ) as counted
      ) as held
      cross join lateral (
        select job.spot, job.id, job.place, row_number() over () as rank   -- they come in the order of their places
        from (
          select job.ctid as spot, job.id, job.place
          from faultline.later as job
          where job.limit_id = own.id and job.lane = admit_in_turn.lane and job.gate = g.gate
            and job.place >= admit_in_turn.wait_floor and job.place is not null
            and (job.expires_at is null or job.expires_at > moment)   -- one that is late is for `expire`
            and (known is null or known ? job.task)
            and (except_tasks is null or job.task <> all (except_tasks))
          order by job.place
          limit least(step, own.per_key - held.many)
          for update skip locked
        ) as job
      ) as job
      order by rank, g.turn
      limit wanted - given
    ),
    taken as (
      delete from faultline.later as job
      where job.ctid = any (array(select fit.spot from fit))
      returning job.*
    ),
    lined_up as (
      insert into faultline.active (id, pos, due_at, job_columns)
      select job.id, nextval('faultline.places'), job.run_at, job.job_columns
      from (
        select taken.*
        from taken
        order by case when step > 1 then array_position(array(select fit.id from fit order by fit.rank, fit.place), taken.id)
                      else taken.place end
      ) as job
      returning gate
    ),
    turns as (
      select lined_up.gate, count(*) as many from lined_up group by lined_up.gate
    )
    select coalesce(sum(turns.many), 0),
           array_agg(turns.gate) filter (where turns.many = step and (own.per_key is null or step < own.per_key))
    into moved, gates
    from turns;
    given := given + moved;
  end loop;
  return given;
end;
$$;
