-- Move leases, deadlines, retries and snoozes back after the clock was set back by `step`.
-- Without this they would last longer by the whole step. A moment that a caller chose (for a job that has not run yet) stays.
-- A row written after the step, `since` at the earliest, already has the new clock and stays too.
create function faultline.clock_set_back(step interval, moment timestamptz, since timestamptz)
returns void
language plpgsql
volatile
as $$
declare
  running   bigint[];
  claims    uuid[];
  waiting   bigint[];
  tokens    bigint[];
  moved     bigint[];
begin
  select array_agg(job.id), array_agg(job.claim) into running, claims
  from faultline.lanes as lane
  cross join lateral (
    select job.id, job.claim
    from faultline.active as job
    where job.lane = lane.id and job.claim is not null
      and job.claimed_at not between clock_set_back.since and clock_set_back.moment
    order by job.pos
  ) as job;

  select array_agg(job.id), array_agg(job.token) into waiting, tokens
  from faultline.later as job
  where job.token > 0 and job.run_at > clock_set_back.moment
    and not exists (
      select from faultline.ledger as entry
      where entry.job_id = job.id and entry.slot = job.token
        and entry.settled_at between clock_set_back.since and clock_set_back.moment);

  -- A locked row, perhaps by a heartbeat, is skipped and tried again: no heartbeat shortens a lease, so a lease that is missed
  -- lasts longer by the whole step. A transaction that holds a row for a second is about to end the lease.
  for turn in 1 .. 40 loop
    with held as materialized (
      select job.id, faultline.lease_of(job.lease_for, job.claimed_by) as lease
      from unnest(running, claims) as known (id, claim)
      join faultline.active as job on job.id = known.id and job.claim = known.claim
      for no key update of job skip locked
    ),
    shifted as (
      update faultline.active as job
      set deadline_at = job.deadline_at - clock_set_back.step,
          -- One lease from now, which a live worker renews, or the rest of a longer lease.
          lease_until = least(job.lease_until,
                              greatest(job.lease_until - clock_set_back.step, clock_set_back.moment + held.lease),
                              greatest(job.deadline_at - clock_set_back.step, clock_set_back.moment))
      from held
      where job.id = held.id
      returning job.id
    )
    select array_agg(shifted.id) into moved from shifted;
    select array_agg(known.id), array_agg(known.claim) into running, claims
    from unnest(running, claims) as known (id, claim)
    join faultline.active as job on job.id = known.id and job.claim = known.claim
    where not exists (select from unnest(moved) as done (id) where done.id = known.id);

    with free as materialized (
      select job.id
      from unnest(waiting, tokens) as known (id, token)
      join faultline.later as job on job.id = known.id and job.token = known.token
      for no key update of job skip locked
    ),
    shifted as (
      update faultline.later as job
      set run_at = greatest(job.run_at - clock_set_back.step, clock_set_back.moment)
      from free
      where job.id = free.id
      returning job.id
    )
    select array_agg(shifted.id) into moved from shifted;
    select array_agg(known.id), array_agg(known.token) into waiting, tokens
    from unnest(waiting, tokens) as known (id, token)
    join faultline.later as job on job.id = known.id and job.token = known.token
    where not exists (select from unnest(moved) as done (id) where done.id = known.id);

    exit when running is null and waiting is null;
    perform pg_sleep(0.025);
  end loop;
end;
$$;
