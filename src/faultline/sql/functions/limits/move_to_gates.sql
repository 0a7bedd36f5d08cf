-- queued -> queued: move the jobs of a task to the limit that it has now, free ones to their gates; running ones count from here on.
-- One batch: so many jobs with an id above `after` are looked at. Answers how many were moved, and up to which id; null when done.
-- A job that another session has locked stays as it is: run it again.
create function faultline.move_to_gates(task faultline.task_name, after bigint default 0, most int default 5000)
returns table (moved bigint, upto bigint)
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  known  faultline.task_limits;
  more   bigint;
begin
  perform faultline.be_durable();
  moved := 0;
  select * into known from faultline.task_limits as listed where listed.task = move_to_gates.task;
  -- No admission meanwhile: rows that get the limit here hold slots at places below its floor.
  perform from faultline.limits as l where l.id = known.limit_id for no key update;
  update faultline.limits as l set held_floor = 0 where l.id = known.limit_id and l.held_floor > 0;

  select max(looked_at.id) into upto
  from (
    select id from (
      (select job.id from faultline.active as job where job.id > after order by job.id limit most)
      union all (select job.id from faultline.later as job where job.id > after order by job.id limit most)
      union all (select job.id from faultline.dead as job where job.id > after order by job.id limit most)
    ) as job (id)
    order by id
    limit most
  ) as looked_at;

  perform faultline.list_lane(known.limit_id, found.lane)
  from (
    select job.lane from faultline.active as job where job.id > after and job.id <= upto and job.task = move_to_gates.task
    union select job.lane from faultline.later as job where job.id > after and job.id <= upto and job.task = move_to_gates.task
    union select job.lane from faultline.dead as job where job.id > after and job.id <= upto and job.task = move_to_gates.task
  ) as found
  where known.limit_id is not null;

  with wrong as materialized (
    select job.id, job.claim is null as free, faultline.moved_gate(known, job.limit_id, job.gate, job.args) as gate
    from faultline.active as job
    where job.id > after and job.id <= upto and job.task = move_to_gates.task
      and (job.limit_id, job.gate) is distinct from (known.limit_id, faultline.moved_gate(known, job.limit_id, job.gate, job.args))
    for no key update skip locked
  ),
  running as (
    update faultline.active as job
    set limit_id = known.limit_id, gate = wrong.gate
    from wrong
    where job.id = wrong.id and (not wrong.free or known.limit_id is null)
    returning job.id
  ),
  freed as (
    delete from faultline.active as job
    using wrong
    where job.id = wrong.id and wrong.free and known.limit_id is not null
    returning job.*
  ),
  gated as (
    insert into faultline.later (id, run_at, limit_id, gate, place, created_at, lane, max_attempts, task, lease_for, timeout, retry, args,
      trace, key_seed, token, attempt, crashes, crashes_alone, key, error, unknown_since, expires_at)
    select freed.id, coalesce(freed.due_at, freed.created_at), known.limit_id, faultline.moved_gate(known, freed.limit_id, freed.gate, freed.args), freed.id,
      freed.created_at, freed.lane, freed.max_attempts, freed.task, freed.lease_for, freed.timeout, freed.retry, freed.args, freed.trace,
      freed.key_seed, freed.token, freed.attempt, freed.crashes, freed.crashes_alone, freed.key, freed.error, freed.unknown_since,
      freed.expires_at
    from freed
    returning id
  )
  select count(*) into more from (select id from running union all select id from gated) as each_one;
  moved := moved + more;

  -- Without a limit, one that waited at a gate is promoted at the next round.
  with wrong as materialized (
    select job.id, faultline.moved_gate(known, job.limit_id, job.gate, job.args) as gate
    from faultline.later as job
    where job.id > after and job.id <= upto and job.task = move_to_gates.task
      and (job.limit_id, job.gate) is distinct from (known.limit_id, faultline.moved_gate(known, job.limit_id, job.gate, job.args))
    for update skip locked
  ),
  gated as (
    update faultline.later as job
    set limit_id = known.limit_id, gate = wrong.gate,
        place = case when known.limit_id is not null then job.place end,
        holds = case when known.limit_id is not null then job.holds end
    from wrong
    where job.id = wrong.id
    returning job.id
  )
  select count(*) into more from gated;
  moved := moved + more;

  update faultline.dead as job
  set limit_id = known.limit_id, gate = faultline.moved_gate(known, job.limit_id, job.gate, job.args)
  where job.id > after and job.id <= upto and job.task = move_to_gates.task
    and (job.limit_id, job.gate) is distinct from (known.limit_id, faultline.moved_gate(known, job.limit_id, job.gate, job.args));
  get diagnostics more = row_count;
  moved := moved + more;
  if upto is null then
    update faultline.task_limits as listed set moved = true where listed.task = move_to_gates.task and not listed.moved;
  end if;
  return next;
end;
$$;
