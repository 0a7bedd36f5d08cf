-- Move dead jobs to the end of their lanes, limited ones to their gates; each takes its key back unless another job has it.
-- The caller holds the row locks.
create function faultline.raise_dead(ids bigint[])
returns table (id bigint, queue text)
language plpgsql
volatile
as $$
#variable_conflict use_column
declare
  moment timestamptz := faultline.now();
begin
  return query
  with raised as (
    delete from faultline.dead as job
    where job.id = any (raise_dead.ids)
    returning job.*
  ),
  named as (
    update faultline.keys as named
    set until = null
    from raised
    join faultline.lanes as lane on lane.id = raised.lane
    where raised.key is not null
      and named.scope = lane.queue and named.key = raised.key and named.job_id = raised.id
    returning named.job_id
  ),
  sound as (
    -- A token out of range was the reason of the burial: with it, the job would be buried again.
    select raised.id, case when raised.token < 2305843009213693952 then raised.token else 0 end as token,
           case when named.job_id is not null then raised.key end as key, raised.error, raised.kept_columns
    from raised
    left join named on named.job_id = raised.id
  ),
  at_gate as (
    insert into faultline.later (id, run_at, place, token, key, error, kept_columns)
    select sound.id, moment, faultline.place_at_gate(sound.limit_id, sound.id), sound.token, sound.key, sound.error,
           sound.kept_columns
    from sound
    where sound.limit_id is not null
  ),
  lined_up as (
    insert into faultline.active (id, pos, due_at, token, key, error, kept_columns)
    select sound.id, nextval('faultline.places'), moment, sound.token, sound.key, sound.error, sound.kept_columns
    from sound
    where sound.limit_id is null
  )
  select sound.id, lane.queue::text
  from sound
  join faultline.lanes as lane on lane.id = sound.lane;
end;
$$;
