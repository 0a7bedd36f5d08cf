-- Move dead jobs to the end of their lanes; each takes its key back unless another job has it.
-- The caller holds the row locks.
create function faultline.raise_dead(ids bigint[])
returns table (id bigint, queue text)
language plpgsql
volatile
as $$
#variable_conflict use_column
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
  lined_up as (
    insert into faultline.active (id, pos, due_at, token, key, error, kept_columns)
    select raised.id, nextval('faultline.places'), faultline.now(),
           -- A token out of range was the reason of the burial: with it, the job would be buried again.
           case when raised.token < 2305843009213693952 then raised.token else 0 end,
           case when named.job_id is not null then raised.key end, raised.error, raised.kept_columns
    from raised
    left join named on named.job_id = raised.id
    returning id, lane
  )
  select lined_up.id, lane.queue::text
  from lined_up
  join faultline.lanes as lane on lane.id = lined_up.lane;
end;
$$;
