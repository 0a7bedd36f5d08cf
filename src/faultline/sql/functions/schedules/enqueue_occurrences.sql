-- (nothing) -> queued: a job for each of these occurrences of a schedule that has none yet; the caller has locked the schedule.
create function faultline.enqueue_occurrences(schedule faultline.schedules, occurrences timestamptz[], how text, moment timestamptz)
returns table (at timestamptz, job_id bigint)
language plpgsql
volatile
as $$
#variable_conflict use_column
declare
  lane      int := faultline.lane_of(schedule.queue, schedule.priority);
  key_seed  bytea := faultline.new_key_seed();
begin
  return query
  with noted as (
    insert into faultline.occurrences (schedule, at, job_id, how, decided_at)
    select schedule.name, asked.at, nextval('faultline.places'), enqueue_occurrences.how, moment
    from (select distinct given.at from unnest(enqueue_occurrences.occurrences) as given (at) order by given.at) as asked
    on conflict on constraint an_occurrence_is_enqueued_once do nothing
    returning at, job_id
  ),
  made as (
    insert into faultline.active (id, pos, created_at, lane, args, max_attempts, task, lease_for, timeout, retry, trace, key_seed)
    select noted.job_id, noted.job_id, moment, lane, schedule.args, schedule.max_attempts, schedule.task, schedule.lease_for,
           schedule.timeout, schedule.retry, null, key_seed
    from noted
  )
  select noted.at, noted.job_id from noted order by noted.at;
end;
$$;
