-- Move dead jobs, locked by the caller, to the end of their lanes; each takes its key back where nobody else has it.
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
    insert into faultline.active (
      id, pos, token, created_at, lane, max_attempts, task, key, lease_for, timeout, retry, error, args, trace,
      due_at, key_seed)
    select raised.id, nextval('faultline.places'),
           -- A token that is none of ours was why it was buried: with it, it would be buried again.
           case when raised.token < 2305843009213693952 then raised.token else 0 end,
           raised.created_at, raised.lane, raised.max_attempts, raised.task,
           case when named.job_id is not null then raised.key end,
           raised.lease_for, raised.timeout, raised.retry, raised.error, raised.args, raised.trace,
           faultline.now(), raised.key_seed
    from raised
    left join named on named.job_id = raised.id
    returning id, lane
  )
  select lined_up.id, lane.queue::text
  from lined_up
  join faultline.lanes as lane on lane.id = lined_up.lane;
end;
$$;
