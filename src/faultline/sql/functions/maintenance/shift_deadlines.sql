-- Move the deadlines of running jobs after a gap between two rounds (an outage, or a clock that was set forward).
-- Jobs could not run and workers could not beat in the gap. A timeout is a duration, so the gap does not count towards it.
create function faultline.shift_deadlines(by interval, since timestamptz)
returns void
language plpgsql
volatile
as $$
declare
  later_on  bigint[] := '{}';
  moved     bigint[];
begin
  -- A locked row, perhaps by a heartbeat, gets two more tries. A transaction that holds it for long is about to end the lease.
  for turn in 1 .. 3 loop
    with held as materialized (
      select job.id
      from faultline.lanes as lane
      cross join lateral (
        select job.id
        from faultline.active as job
        where job.lane = lane.id and job.pos <= lane.top and job.claimed_at <= shift_deadlines.since and job.id <> all (later_on)
        order by job.pos
        for no key update skip locked
      ) as job
    ),
    shifted as (
      update faultline.active as job
      set deadline_at = job.deadline_at + shift_deadlines.by
      from held
      where job.id = held.id
      returning job.id
    )
    select array_agg(shifted.id) into moved from shifted;
    later_on := later_on || coalesce(moved, '{}');
    perform pg_sleep(0.01);
  end loop;
end;
$$;
