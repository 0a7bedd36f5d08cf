-- The clock was set back by `step`: what was measured from the moments before that would last that much longer. Leases and deadlines
-- of what runs, retries and snoozes are moved back with it; moments that people chose (a job that has not run yet) stay.
-- What came since the step, `since` at the earliest, was measured by the new clock and stays, too.
create function faultline.clock_set_back(step interval, moment timestamptz, since timestamptz)
returns void
language plpgsql
volatile
as $$
begin
  with held as materialized (
    select job.id, job.claimed_at between clock_set_back.since and clock_set_back.moment as newer,
           faultline.lease_of(job.lease_for, job.claimed_by) as lease
    from faultline.lanes as lane
    cross join lateral (
      select job.id, job.claimed_at, job.lease_for, job.claimed_by
      from faultline.active as job
      where job.lane = lane.id and job.claim is not null
      order by job.pos
      for no key update skip locked
    ) as job
  )
  update faultline.active as job
  set deadline_at = job.deadline_at - clock_set_back.step,
      -- One lease from now, for who lives to renew it, or what was left of a longer one.
      lease_until = least(job.lease_until,
                          greatest(job.lease_until - clock_set_back.step, clock_set_back.moment + held.lease),
                          greatest(job.deadline_at - clock_set_back.step, clock_set_back.moment))
  from held
  where job.id = held.id and not held.newer;

  update faultline.later as job
  set run_at = greatest(job.run_at - clock_set_back.step, clock_set_back.moment)
  where job.token > 0 and job.run_at > clock_set_back.moment
    and not exists (
      select from faultline.ledger as entry
      where entry.job_id = job.id and entry.slot = job.token
        and entry.settled_at between clock_set_back.since and clock_set_back.moment);
end;
$$;
