-- After a gap between two rounds, by an outage or by a clock that was set forward: nobody could run or beat in it, so it does not
-- count towards the deadlines of what was running. They are durations, and `deadline_at` is only where they end.
create function faultline.shift_deadlines(by interval, since timestamptz)
returns void
language plpgsql
volatile
as $$
declare
  later_on  bigint[] := '{}';
  moved     bigint[];
begin
  -- A row that is locked just now, by a beat perhaps, gets another chance or two; whoever holds one for long is about to end it.
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
