-- (nothing) -> queued: enqueue what schedules are due for, and move their next times, in one transaction.
--
-- Each of `firings` names a schedule, its `revision`, the time it is `due`, the occurrences to enqueue, `late` ones and those `on_time`,
-- and the `next` time; `ended` means that there is none, and without both a watchdog computes it later. A schedule whose next time is
-- another by now was fired by another watchdog, and one that is locked is just being fired: both are left out of the answer.
-- Hash joins stay allowed here: a batch is joined to itself by name.
-- `busy`: the job before it was to be cancelled and is locked. Nothing of this schedule was done, and the next tick tries again.
create function faultline.fire(firings jsonb)
returns table (name text, state text, jobs bigint, skipped bigint, queue text, cancelled bigint[])
language plpgsql
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  moment    timestamptz := faultline.now();
  key_seed  bytea := faultline.new_key_seed();   -- the same for all jobs: their ids differ
  patience  text := current_setting('lock_timeout');
  held      faultline.schedules[];
  one       faultline.schedules;
  running   bigint[];
  skipping  text[] := '{}';
  ended     jsonb := '{}';
  limited   boolean := faultline.uses_limits();   -- jobs of a task with a limit wait at its gate
begin
  if jsonb_array_length(firings) > 1000 or exists (
    select
    from jsonb_to_recordset(firings) as asked (due timestamptz, next timestamptz, late timestamptz[], on_time timestamptz[])
    where asked.next <= asked.due or cardinality(asked.late) + cardinality(asked.on_time) > 200
       or exists (select from unnest(asked.late || asked.on_time) as occurrence (at) where occurrence.at < asked.due or occurrence.at > moment))
  then
    raise exception 'a firing goes forward: its occurrences lie between the time that is due and now, and its next time behind them'
      using errcode = 'LS005', hint = 'At most 1000 schedules in one call, with at most 200 occurrences each.';
  end if;
  perform faultline.be_durable();
  perform faultline.check_server();

  -- The comparison and the lock are one statement: after the lock it is repeated with the newest version of the row.
  held := array(
    select mine
    from faultline.schedules as mine
    join jsonb_to_recordset(firings) as asked (name text, revision bigint, due timestamptz) on asked.name = mine.name
    where mine.next_at = asked.due and mine.revision = asked.revision and mine.paused_at is null
    order by mine.name
    for no key update of mine skip locked);

  foreach one in array held loop
    continue when one.overlap = 'allow' and exists (
      select from faultline.lanes as lane where lane.queue = one.queue and lane.priority = one.priority);
    begin
      -- A lane may be gone with its queue. Another transaction may hold that queue: the wait has a limit.
      perform set_config('lock_timeout', '50ms', true);
      perform faultline.lane_of(one.queue, one.priority);
      running := case when one.overlap <> 'allow' then faultline.unfinished_jobs(one.name) end;
      if cardinality(running) > 0 and one.overlap = 'skip' then
        skipping := skipping || one.name::text;
      elsif cardinality(running) > 0 then
        if faultline.cancel_unlocked(running, format('schedule %s is due again', one.name)) then
          ended := ended || jsonb_build_object(one.name, to_jsonb(running));
        else
          raise exception 'locked' using errcode = 'lock_not_available';
        end if;
      end if;
    exception when lock_not_available then
      update faultline.schedules as row set held_until = moment + interval '500 milliseconds' where row.name = one.name;
      held := array(select kept from unnest(held) as kept where kept.name <> one.name);
      return query select one.name::text, 'busy'::text, 0::bigint, 0::bigint, one.queue::text, '{}'::bigint[];
    end;
  end loop;
  perform set_config('lock_timeout', patience, true);

  perform faultline.list_lane(tied.limit_id, lane.id)
  from unnest(held) as mine
  join faultline.task_limits as tied on tied.task = mine.task
  join faultline.lanes as lane on lane.queue = mine.queue and lane.priority = mine.priority
  where limited;

  return query
  with asked as materialized (
    select given.*
    from jsonb_to_recordset(firings) as given (
      name text, next timestamptz, ended boolean, error text, late timestamptz[], on_time timestamptz[])
  ),
  planned as materialized (
    select mine.name, mine.jitter, mine.args, mine.task, mine.max_attempts, mine.lease_for, mine.timeout, mine.retry,
      lane.id as lane, tied.limit_id, case when tied.limit_id is not null then faultline.gate_in(tied, mine.args) end as gate,
      occurrence.at,
      case when occurrence.place <= cardinality(asked.late) then 'missed' else 'due' end as how,
      case when (case mine.overlap when 'allow' then true
                      when 'skip' then occurrence.place = 1 and mine.name <> all (skipping)
                      else occurrence.place = cardinality(asked.late) + cardinality(asked.on_time) end)
           then nextval('faultline.places') end as id
    from unnest(held) as mine
    join asked on asked.name = mine.name
    join faultline.lanes as lane on lane.queue = mine.queue and lane.priority = mine.priority
    left join faultline.task_limits as tied on limited and tied.task = mine.task
    cross join lateral unnest(asked.late || asked.on_time) with ordinality as occurrence (at, place)
  ),
  noted as (
    insert into faultline.occurrences (schedule, at, job_id, how, decided_at)
    select planned.name, planned.at, planned.id, case when planned.id is null then 'skipped' else planned.how end, moment
    from planned
    on conflict on constraint an_occurrence_is_enqueued_once do nothing
    returning schedule, job_id
  ),
  made as materialized (
    select planned.*, planned.at + planned.jitter * random() as run_at
    from planned
    join noted on noted.job_id = planned.id
  ),
  due as (
    insert into faultline.active (id, pos, created_at, lane, args, max_attempts, task, lease_for, timeout, retry, trace, key_seed)
    select made.id, made.id, moment, made.lane, made.args, made.max_attempts, made.task, made.lease_for, made.timeout, made.retry,
      null, key_seed
    from made
    where made.run_at <= moment and made.limit_id is null
  ),
  put_off as (
    insert into faultline.later (
      id, run_at, created_at, lane, args, max_attempts, task, lease_for, timeout, retry, key_seed, limit_id, gate, place)
    select made.id, made.run_at, moment, made.lane, made.args, made.max_attempts, made.task, made.lease_for, made.timeout, made.retry,
      key_seed, made.limit_id, made.gate, case when made.limit_id is not null and made.run_at <= moment then made.id end
    from made
    where made.run_at > moment or made.limit_id is not null
  ),
  moved as (
    update faultline.schedules as row
    set next_at = asked.next,
        ended_at = case when asked.ended then moment end,
        last_at = coalesce((asked.late || asked.on_time)[cardinality(asked.late) + cardinality(asked.on_time)], row.last_at),
        error = left(asked.error, 1000),
        held_until = null
    from unnest(held) as mine
    join asked on asked.name = mine.name
    where row.name = mine.name
    returning row.name, row.queue
  )
  select moved.name::text, 'fired'::text, count(noted.job_id), count(noted.schedule) - count(noted.job_id), moved.queue::text,
         array(select jsonb_array_elements_text(ended -> moved.name)::bigint)
  from moved
  left join noted on noted.schedule = moved.name
  group by moved.name, moved.queue;
end;
$$;
