-- queued (at a gate) -> queued (due): give free slots to jobs that wait at the gates of their limits; nothing else does.
-- It runs in a claim and in the watchdog's sweep, and decides under the lock of the limit's row. A producer's transaction may stay open,
-- and completions would wait for each other, so neither of them admits.
create function faultline.admit(
  queues text[], room int, known jsonb default null, except_tasks text[] default null, freed bigint[] default null)
returns int
language plpgsql
volatile
as $$
declare
  left_over  int := admit.room;
  line       record;
  parent     faultline.limits;
  own        faultline.limits;
  moment     timestamptz;
  gates      bigint[];
  wanted     int;
  given      int;
begin
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    raise exception 'a claim of limited jobs runs at READ COMMITTED, not at %', upper(current_setting('transaction_isolation'))
      using errcode = 'LS005', hint = 'With an older snapshot it would not see what others have admitted.';
  end if;

  -- Every caller locks in this order, a parent before its children, so callers do not deadlock.
  for line in
    select limited.limit_id, limited.lane, case when known_limit.per_key = 1 then 0 else limited.wait_floor end as floor,
           known_limit.parent, known_limit.rest_until, row_number() over whole as number, count(*) over () as lines
    from faultline.limited_lanes as limited
    join faultline.limits as known_limit on known_limit.id = limited.limit_id
    join faultline.lanes as lane on lane.id = limited.lane
    where limited.queue = any (admit.queues) and not lane.paused
    window whole as (
      order by coalesce(known_limit.parent, known_limit.id), known_limit.parent is not null, known_limit.id, lane.priority)
    order by number
  loop
    exit when left_over <= 0;
    continue when admit.freed is null and faultline.rests(line.rest_until);
    -- Without the lock, which others wait for: mostly nothing waits.
    continue when not exists (
      select from faultline.later as job
      where job.limit_id = line.limit_id and job.lane = line.lane and job.place >= line.floor and job.place is not null);

    if line.parent is distinct from parent.id then
      select * into parent from faultline.limits as l where l.id = line.parent for no key update;
    end if;
    if line.limit_id is distinct from own.id then
      select * into own from faultline.limits as l where l.id = line.limit_id for no key update;
    end if;
    -- Its parent is that of a snapshot from before the lock: with another one by now, the next claim does it.
    continue when own.parent is distinct from line.parent;

    -- Each line may take its part of the room, and what the lines before it have left.
    moment := faultline.now();   -- after the locks: an earlier moment would fill the bucket twice
    wanted := least(ceil(left_over::float8 / (line.lines - line.number + 1)),
                    faultline.slots_left(own), faultline.slots_left(parent),
                    faultline.tokens_left(own, moment), faultline.tokens_left(parent, moment));
    given := 0;
    if wanted > 0 then
      gates := faultline.waiting_gates(
        line.limit_id, line.lane, line.floor, greatest(wanted, 64), admit.freed, faultline.rests(own.rest_until));
      given := case when own.per_key = 1
        then faultline.admit_first(own, line.lane, gates, wanted, moment, known, except_tasks)
        else faultline.admit_in_turn(own, line.lane, line.floor, gates, wanted, moment, known, except_tasks) end;
      left_over := left_over - given;
    end if;
    perform faultline.charge(own, moment, given);
    perform faultline.charge(parent, moment, given);
    if own.rate is not null then
      select * into own from faultline.limits as l where l.id = own.id;
    end if;
    if parent.rate is not null then
      select * into parent from faultline.limits as l where l.id = parent.id;
    end if;

    -- Looking at full gates takes at most a twentieth of a core: meanwhile claims look at the freed ones alone.
    if wanted > 0 and given = 0 and cardinality(gates) >= 64 and not faultline.rests(own.rest_until) then
      perform faultline.rest_gates(own.id, moment);
    end if;
  end loop;
  return admit.room - left_over;
end;
$$;
