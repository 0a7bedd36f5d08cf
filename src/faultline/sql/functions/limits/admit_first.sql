-- Admit the first job of each of these gates, up to `wanted`, where no job of the gate is under way: strict order in each gate.
-- The caller holds the lock of the limit. A first job that another session holds is not passed: its gate waits.
create function faultline.admit_first(
  own faultline.limits, lane int, gates bigint[], wanted int, moment timestamptz, known jsonb, except_tasks text[])
returns int
language plpgsql
volatile
as $$
declare
  given int;
begin
  with first as materialized (
    select job.spot
    from unnest(gates) as g (gate)
    cross join lateral (
      select job.ctid as spot
      from faultline.later as job
      where job.id = (
          select head.id
          from faultline.later as head
          where head.limit_id = own.id and head.lane = admit_first.lane and head.gate = g.gate and head.place is not null
            and (head.expires_at is null or head.expires_at > moment)   -- one that is late is for `expire`
          order by head.place
          limit 1)
        and (known is null or known ? job.task)
        and (except_tasks is null or job.task <> all (except_tasks))
        and not exists (
          select from faultline.active as held
          where held.limit_id = own.id and held.gate = g.gate and held.pos >= own.held_floor)
        and not exists (
          select from faultline.later as held
          where held.limit_id = own.id and held.gate = g.gate and held.holds)
      for update skip locked
    ) as job
    limit wanted
  ),
  taken as (
    delete from faultline.later as job
    where job.ctid = any (array(select first.spot from first))
    returning job.*
  ),
  lined_up as (
    insert into faultline.active (id, pos, due_at, job_columns)
    select job.id, nextval('faultline.places'), job.run_at, job.job_columns
    from (select taken.* from taken order by taken.place) as job
    returning gate
  )
  select count(*) into given from lined_up;
  return given;
end;
$$;
