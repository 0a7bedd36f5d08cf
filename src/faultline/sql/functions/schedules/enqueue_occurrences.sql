-- (nothing) -> queued: a job for each of these occurrences of a schedule that has none yet; the caller has locked the schedule.
-- Where its task has a limit they wait at their gate; a key that is missing in the args counts as a key of its own.
create function faultline.enqueue_occurrences(schedule faultline.schedules, occurrences timestamptz[], how text, moment timestamptz)
returns table (at timestamptz, job_id bigint)
language plpgsql
volatile
as $$
#variable_conflict use_column
declare
  lane      int := faultline.lane_of(schedule.queue, schedule.priority);
  key_seed  bytea := faultline.new_key_seed();
  limited   faultline.task_limits;
  gate      bigint;
begin
  if faultline.uses_limits() then
    limited := faultline.limit_of(schedule.task, null);
    gate := faultline.gate_in(limited, schedule.args);
    perform faultline.list_lane(limited.limit_id, lane) where limited.limit_id is not null;
  end if;

  return query
  with noted as (
    insert into faultline.occurrences (schedule, at, job_id, how, decided_at)
    select schedule.name, asked.at, nextval('faultline.places'), enqueue_occurrences.how, moment
    from (select distinct given.at from unnest(enqueue_occurrences.occurrences) as given (at) order by given.at) as asked
    on conflict on constraint an_occurrence_is_enqueued_once do nothing
    returning at, job_id
  ),
  made as (
    insert into faultline.active (id, pos, created_at, lane, args, max_attempts, task, lease_for, timeout, retry, key_seed)
    select noted.job_id, noted.job_id, moment, lane, schedule.args, schedule.max_attempts, schedule.task, schedule.lease_for,
           schedule.timeout, schedule.retry, key_seed
    from noted
    where limited.limit_id is null
  ),
  put_at_gate as (
    insert into faultline.later (
      id, run_at, created_at, lane, args, max_attempts, task, lease_for, timeout, retry, key_seed, limit_id, gate, place)
    select noted.job_id, moment, moment, lane, schedule.args, schedule.max_attempts, schedule.task, schedule.lease_for,
           schedule.timeout, schedule.retry, key_seed, limited.limit_id, gate, noted.job_id
    from noted
    where limited.limit_id is not null
  )
  select noted.at, noted.job_id from noted order by noted.at;
end;
$$;
